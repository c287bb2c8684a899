#include "tools/simulator/budget.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <utility>

#include "runtime/fmt.h"

namespace rondo::simulator {

namespace {

constexpr double kRounding = 1e-6;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(trimmed(part));
  return parts;
}

double as_real(std::uint64_t n) { return static_cast<double>(n); }

const std::vector<std::pair<std::string, std::function<double(const Metrics&)>>>& metrics_by_name() {
  static const std::vector<std::pair<std::string, std::function<double(const Metrics&)>>> kAll = {
      {"useful_bytes_per_line", [](const Metrics& m) { return m.useful_bytes_per_line; }},
      {"useful_weight_bytes_per_line", [](const Metrics& m) { return m.useful_weight_bytes_per_line; }},
      {"activation_bytes_per_weight_byte", [](const Metrics& m) { return m.activation_bytes_per_weight_byte; }},
      {"bank_conflict_factor", [](const Metrics& m) { return m.bank_conflict_factor; }},
      {"line_factor", [](const Metrics& m) { return m.line_factor; }},
      {"barriers", [](const Metrics& m) { return as_real(m.barriers); }},
      {"dependent_loads", [](const Metrics& m) { return as_real(m.dependent_loads); }},
      {"loads_in_flight", [](const Metrics& m) { return as_real(m.loads_in_flight); }},
      {"idle_lanes", [](const Metrics& m) { return m.idle_lanes; }},
      {"divergence", [](const Metrics& m) { return m.divergence; }},
  };
  return kAll;
}

}  // namespace

std::optional<double> find_metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [own, value] : metrics_by_name()) {
    if (own == name) return value(metrics);
  }
  return std::nullopt;
}

Result<std::vector<BudgetLine>> parse_budget(const std::string& text, const std::string& name) {
  std::vector<BudgetLine> lines;
  std::istringstream in(text);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (trimmed(line).empty() || trimmed(line)[0] == '#') continue;
    const auto wrong = [&](const std::string& what) { return Status(StatusCode::kCorruptData, fmt::format("{}: line {}: {}", name, number, what)); };
    const std::vector<std::string> fields = split(line, '|');
    if (fields.size() != 5) return wrong(fmt::format("has {} fields instead of kernel | shape | type | lanes | limits", fields.size()));
    BudgetLine budget{fields[0], fields[1], fields[2] == "-" ? "" : fields[2], static_cast<std::uint32_t>(std::strtoul(fields[3].c_str(), nullptr, 10)), {}};
    for (const std::string& text_of_limit : split(fields[4], ',')) {
      std::istringstream words(text_of_limit);
      Limit limit;
      std::string relation, rest;
      if (!(words >> limit.name >> relation >> limit.value) || (words >> rest) || (relation != "<=" && relation != ">=")) return wrong(fmt::format("'{}' is no limit like 'line_factor <= 1.5'", text_of_limit));
      limit.at_most = relation == "<=";
      const auto& all = metrics_by_name();
      if (std::none_of(all.begin(), all.end(), [&](const auto& metric) { return metric.first == limit.name; })) return wrong(fmt::format("there is no '{}'", limit.name));
      budget.limits.push_back(std::move(limit));
    }
    if (budget.limits.empty()) return wrong("has no limit");
    lines.push_back(std::move(budget));
  }
  return lines;
}

std::string exceeded(const BudgetLine& line, const Metrics& metrics) {
  std::string all;
  for (const Limit& limit : line.limits) {
    const double value = *find_metric(metrics, limit.name);
    if (limit.at_most ? value <= limit.value + kRounding : value >= limit.value - kRounding) continue;
    all += fmt::format("{}{} is {:.4g} instead of {} {:.4g}", all.empty() ? "" : ", ", limit.name, value, limit.at_most ? "at most" : "at least", limit.value);
  }
  return all;
}

}  // namespace rondo::simulator
