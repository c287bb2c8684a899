// docs/operators.md against the operators' tables: every operator, input and attribute is there, in order, and nothing else.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/attribute_reader.h"
#include "runtime/fmt.h"
#include "tools/check/op_case.h"

namespace rondo::graph::operators_document_test {
namespace {

/// A line of a table: the name in backticks of its first cell, what is behind the name there, and the other cells.
struct Row {
  std::string name, mark, second, all;
};

struct Section {
  std::vector<Row> inputs, attributes;
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// What stands in backticks.
std::vector<std::string> in_backticks(const std::string& line) {
  std::vector<std::string> names;
  std::size_t at = 0;
  while ((at = line.find('`', at)) != std::string::npos) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string::npos) break;
    names.push_back(line.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names;
}

Row parse_row(const std::string& line) {
  const std::size_t name_end = line.find('`', 3), second = line.find('|', 1), third = line.find('|', second + 1);
  return {line.substr(3, name_end - 3), trimmed(line.substr(name_end + 1, second - name_end - 1)), trimmed(line.substr(second + 1, third - second - 1)), line};
}

std::map<std::string, Section> parse(std::istream& document) {
  std::map<std::string, Section> sections;
  std::vector<std::string> names;
  std::vector<Row> Section::*table = nullptr;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("#")) {
      names = line.starts_with("### `") ? in_backticks(line) : std::vector<std::string>();
      table = nullptr;
      for (const std::string& name : names) EXPECT_TRUE(sections.try_emplace(name).second) << name << " has two sections";
    }
    if (line.starts_with("| input |")) table = &Section::inputs;
    if (line.starts_with("| attribute |")) table = &Section::attributes;
    if (!line.starts_with("| `") || !table) continue;
    for (const std::string& name : names) (sections[name].*table).push_back(parse_row(line));
  }
  return sections;
}

std::map<std::string, Section> sections() {
  std::ifstream document(RONDO_TESTS_DATA_DIR "/../../docs/operators.md");
  EXPECT_TRUE(document.good()) << "docs/operators.md can't be read";
  return parse(document);
}

/// Whether a cell says what the code falls back to: a literal in backticks, or words where there is none.
bool says(const std::string& cell, const std::optional<AttributeValue>& fallback) {
  const std::vector<std::string> literals = in_backticks(cell);
  const bool is_literal = literals.size() == 1 && cell == "`" + literals[0] + "`";
  if (!fallback) return !is_literal && !cell.empty();
  if (!is_literal) return false;
  const std::string& literal = literals[0];
  if (const bool* value = std::get_if<bool>(&*fallback)) return literal == (*value ? "true" : "false");
  if (const auto* value = std::get_if<std::string>(&*fallback)) return literal == "\"" + *value + "\"";
  if (const auto* value = std::get_if<std::vector<std::int64_t>>(&*fallback)) return value->empty() && literal == "[]";
  char* end = nullptr;
  const double number = std::strtod(literal.c_str(), &end);
  if (literal.empty() || *end != '\0') return false;
  const auto* integer = std::get_if<std::int64_t>(&*fallback);
  return number == (integer ? static_cast<double>(*integer) : std::get<double>(*fallback));
}

void expect_inputs(const std::string& op, const Section& section, std::span<const NamedInput> inputs) {
  ASSERT_EQ(section.inputs.size(), inputs.size()) << op;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Row& row = section.inputs[i];
    EXPECT_EQ(row.name, inputs[i].name) << op;
    EXPECT_EQ(row.mark, inputs[i].optional ? "?" : "") << op << ", " << row.name;
    EXPECT_EQ(row.all.find("*in place*") != std::string::npos, inputs[i].written) << op << ", " << row.name;
  }
}

TEST(OperatorsDocumentTest, SaysWhatTheTablesSay) {
  std::map<std::string, Section> found = sections();
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Operator& table = operator_of(static_cast<Op>(i));
    ASSERT_TRUE(found.contains(table.name)) << table.name << " has no section";
    const Section section = found[table.name];
    found.erase(table.name);
    expect_inputs(table.name, section, table.inputs);
    const NamedNode none{table.name, {}, {}};
    AttributeReader reader(none);
    if (table.read_attributes) table.read_attributes(reader);
    ASSERT_EQ(section.attributes.size(), reader.known().size()) << table.name;
    for (std::size_t a = 0; a < section.attributes.size(); ++a) {
      const KnownAttribute& known = reader.known()[a];
      EXPECT_EQ(section.attributes[a].name, known.name) << table.name;
      EXPECT_TRUE(says(section.attributes[a].second, known.fallback)) << table.name << ", " << known.name << ": not " << section.attributes[a].second;
    }
  }
  for (const char* view : {"slice", "transpose", "reshape"}) {
    ASSERT_TRUE(found.contains(view)) << view << " has no section";
    expect_inputs(view, found[view], named_inputs(view));
    found.erase(view);
  }
  for (const auto& left : found) ADD_FAILURE() << left.first << " has a section but is no operator";
}

/// The views' attributes, out of the refusal that lists them.
TEST(OperatorsDocumentTest, SaysWhatViewsTake) {
  using Integers = std::vector<std::int64_t>;
  const std::vector<NamedNode> nodes = {{"slice", {}, {{"starts", Integers{0, 0}}, {"ends", Integers{1, 1}}}},
                                        {"slice", {}, {{"axis", std::int64_t{0}}}},
                                        {"transpose", {}, {{"permutation", Integers{1, 0}}}},
                                        {"reshape", {}, {{"shape", Integers{6}}}}};
  std::map<std::string, std::string> listed;
  for (NamedNode node : nodes) {
    check::OpCase c;
    node.inputs = {{"input", c.f32("x", {2, 3}, std::vector<float>(6))}};
    node.attributes.emplace_back("qqqqqqqqqqqq", true);
    const std::string message = add_named_node(c.graph, node).status().message();
    const std::size_t list = message.find("there are ");
    ASSERT_NE(list, std::string::npos) << message;
    listed[node.op] += (listed[node.op].empty() ? "" : ", ") + message.substr(list + 10);
  }
  std::map<std::string, Section> found = sections();
  for (const auto& [op, names] : listed) {
    std::vector<std::string> written;
    for (const Row& row : found[op].attributes) written.push_back(row.name);
    EXPECT_EQ(fmt::format("{}", fmt::join(written, ", ")), names) << op;
  }
}

TEST(OperatorsDocumentTest, WhatDiffersIsSeen) {
  EXPECT_TRUE(says("`1e-5`", AttributeValue(1e-5)));
  EXPECT_FALSE(says("`1e-6`", AttributeValue(1e-5)));
  EXPECT_FALSE(says("1e-5", AttributeValue(1e-5)));
  EXPECT_TRUE(says("`\"half\"`", AttributeValue("half")));
  EXPECT_FALSE(says("`\"interleaved\"`", AttributeValue("half")));
  EXPECT_FALSE(says("`false`", AttributeValue(true)));
  EXPECT_TRUE(says("must be given", std::nullopt));
  EXPECT_FALSE(says("`3`", std::nullopt));
  EXPECT_FALSE(says("`3`", AttributeValue(std::int64_t{4})));
}

}  // namespace
}  // namespace rondo::graph::operators_document_test
