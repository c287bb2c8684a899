// The operators' tables against what the operators do.
#include "graph/operator.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "graph/attribute_reader.h"
#include "graph/lowering.h"
#include "tools/check/case_text.h"
#include "tools/check/cases.h"

namespace rondo::graph::operator_test {
namespace {

using Names = std::set<std::string>;

/// The inputs of an operator that its dispatches write, and those that its reference changes, in cases of it.
struct Written {
  Names by_dispatches, by_reference;
};

/// Names of the node's inputs whose storages are in `storages`; "input 9" for one without a name.
Names names_of(const Graph& graph, const Node& node, const std::set<StorageId>& storages) {
  Names names;
  const std::span<const NamedInput> inputs = operator_of(node.op).inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone || !storages.contains(graph.tensor(node.inputs[i]).storage)) continue;
    names.insert(i < inputs.size() ? inputs[i].name : "input " + std::to_string(i));
  }
  return names;
}

/// Each storage in a buffer of its own, so that a binding tells which one it is of.
std::set<StorageId> find_written(check::OpCase c) {
  for (std::size_t i = 0; i < c.graph.n_storages(); ++i) {
    Storage& storage = c.graph.storage(static_cast<StorageId>(i));
    storage.place = {static_cast<std::uint32_t>(i + 1), 0, storage.size_bytes};
  }
  runtime::DeviceCaps caps;
  caps.storage16 = true;
  LoweringOptions options;
  options.fusion = false;
  const Result<Lowered> lowered = lower(c.graph, caps, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  std::set<StorageId> written;
  if (!lowered.ok()) return written;
  for (const runtime::Dispatch& dispatch : lowered->program.dispatches) {
    for (const runtime::Binding& binding : dispatch.bindings) {
      if (binding.access != runtime::Access::kRead && binding.range.buffer > 0) written.insert(static_cast<StorageId>(binding.range.buffer) - 1);
    }
  }
  return written;
}

std::set<StorageId> find_changed(const check::OpCase& c) {
  const Result<std::vector<std::vector<std::byte>>> after = c.run_reference();
  EXPECT_TRUE(after.ok()) << after.status().message();
  std::set<StorageId> changed;
  for (std::size_t i = 0; after.ok() && i < after->size(); ++i) {
    const auto id = static_cast<StorageId>(i);
    const StorageKind kind = c.graph.storage(id).kind;
    if (kind != StorageKind::kActivation && kind != StorageKind::kOutput && (*after)[i] != c.before(id)) changed.insert(id);
  }
  return changed;
}

void look_at(const std::string& text, const Operator& table, Written& written) {
  const Result<check::CaseText> parsed = check::parse_case(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Result<check::OpCase> c = check::build_case(*parsed, check::Values::kRandom, 1);
  ASSERT_TRUE(c.ok()) << c.status().message();
  const std::vector<Node>& nodes = c->graph.nodes();
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& one) { return &operator_of(one.op) == &table; });
  ASSERT_NE(node, nodes.end()) << text;
  written.by_dispatches.merge(names_of(c->graph, *node, find_written(*c)));
  written.by_reference.merge(names_of(c->graph, *node, find_changed(*c)));
}

/// Fusion moves nodes past others that don't write what they read: an operator that writes an input without saying so would
/// be fused wrongly, in silence.
TEST(OperatorTest, InputsThatAreWrittenSaySo) {
  constexpr std::size_t kCasesOfEach = 4;  // the smallest
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Operator& table = operator_of(static_cast<Op>(i));
    std::vector<std::string> cases;
    for (const std::string& text : check::all_cases(false)) {
      const bool huge = text.find("50257") != std::string::npos || text.find("70000") != std::string::npos;
      if (text.starts_with(std::string(table.name) + " ") && !huge) cases.push_back(text);
    }
    ASSERT_FALSE(cases.empty()) << table.name;
    Written written;
    for (std::size_t n = 0; n < cases.size(); n += std::max<std::size_t>(1, cases.size() / kCasesOfEach)) look_at(cases[n], table, written);
    Names declared;
    for (const NamedInput& input : table.inputs) {
      if (input.written) declared.insert(input.name);
    }
    EXPECT_EQ(written.by_dispatches, declared) << table.name << ": its dispatches write other inputs than its table says";
    EXPECT_EQ(written.by_reference, declared) << table.name << ": its reference changes other inputs than its table says";
  }
}

TEST(OperatorTest, TablesAreWhole) {
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Operator& table = operator_of(static_cast<Op>(i));
    EXPECT_EQ(find_operator(table.name), static_cast<Op>(i)) << table.name;
    EXPECT_TRUE(table.infer && table.lower) << table.name;
    EXPECT_NE(table.reference == nullptr, table.decompose == nullptr) << table.name << ": one of both";
    EXPECT_FALSE(table.inputs.empty() || table.kernels.empty()) << table.name;
    Names names;
    for (const NamedInput& input : table.inputs) {
      EXPECT_TRUE(names.insert(input.name).second) << table.name << ": " << input.name << " twice";
      const bool changeable = input.role == InputRole::kCache || input.role == InputRole::kStepState;
      EXPECT_TRUE(changeable || !input.written) << table.name << ": " << input.name << " has a role that nobody may write";
    }
    if (!table.read_attributes) continue;
    const NamedNode none{table.name, {}, {}};
    AttributeReader reader(none);
    table.read_attributes(reader);
    EXPECT_FALSE(reader.known().empty()) << table.name;
  }
}

TEST(AttributeReaderTest, TellsNamesAndDefaults) {
  const NamedNode none{"rope", {}, {}};
  AttributeReader reader(none);
  operator_of(Op::rope).read_attributes(reader);
  ASSERT_EQ(reader.known().size(), 5u);
  EXPECT_STREQ(reader.known()[0].name, "style");
  EXPECT_EQ(reader.known()[0].fallback, AttributeValue("half"));
  EXPECT_STREQ(reader.known()[2].name, "theta");
  EXPECT_EQ(reader.known()[2].fallback, AttributeValue(10000.0));
  AttributeReader top(none);
  operator_of(Op::top_k).read_attributes(top);
  EXPECT_EQ(top.known()[0].fallback, std::nullopt) << "k must be given";
}

}  // namespace
}  // namespace rondo::graph::operator_test
