#include "tools/simulator/metrics.h"

#include <algorithm>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/fmt.h"

namespace rondo::simulator {

namespace {

using Kind = AccessCount::Kind;

double ratio(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }
const char* name_of(Kind kind) { return kind == Kind::kLoad ? "load" : kind == Kind::kStore ? "store" : "atomic"; }

std::vector<const AccessCount*> by_lines(const Report& report) {
  std::vector<const AccessCount*> sorted;
  for (const AccessCount& count : report.accesses) sorted.push_back(&count);
  std::stable_sort(sorted.begin(), sorted.end(), [](const AccessCount* a, const AccessCount* b) { return a->lines64 + a->bank_rounds > b->lines64 + b->bank_rounds; });
  return sorted;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return safe;
}

}  // namespace

Metrics::Metrics(const SimulatedDispatch& done) {
  const Report& report = done.report;
  std::uint64_t bytes = 0, lines = 0, weight_bytes = 0, weight_lines = 0, lane_activation_bytes = 0, rounds = 0, ideal_rounds = 0, all_lines = 0, ideal_lines = 0;
  for (const AccessCount& count : report.accesses) {
    const Variable& variable = done.module.variables[count.variable];
    rounds += count.bank_rounds, ideal_rounds += count.ideal_bank_rounds;
    all_lines += count.lines64, ideal_lines += count.ideal_lines64;
    if (variable.space != Space::kBuffer || count.kind != Kind::kLoad) continue;
    bytes += count.bytes, lines += count.lines64;
    if (variable.binding >= done.kinds.size()) continue;
    const graph::StorageKind kind = done.kinds[variable.binding];
    if (kind == graph::StorageKind::kWeight) weight_bytes += count.bytes, weight_lines += count.lines64;
    if (kind == graph::StorageKind::kInput || kind == graph::StorageKind::kActivation) lane_activation_bytes += count.lane_bytes;
  }
  useful_bytes_per_line = ratio(bytes, lines);
  useful_weight_bytes_per_line = ratio(weight_bytes, weight_lines);
  activation_bytes_per_weight_byte = ratio(lane_activation_bytes, weight_bytes);
  bank_conflict_factor = ratio(rounds, ideal_rounds);
  line_factor = ratio(all_lines, ideal_lines);
  barriers = report.barriers;
  dependent_loads = report.dependent_loads, loads_in_flight = report.loads_in_flight;
  idle_lanes = report.idle_lanes();
  divergence = ratio(report.divergent_operations, report.operations);
}

std::string table_of(const SimulatedDispatch& done, const Metrics& metrics) {
  const Report& report = done.report;
  std::string text = fmt::format("{}: {} x {} x {} workgroups of {}, subgroups of {}; {:.2f} M operations of lanes\n", done.dispatch.label, done.dispatch.grid[0], done.dispatch.grid[1], done.dispatch.grid[2],
                                 done.module.n_invocations(), report.subgroup_size, static_cast<double>(report.lane_operations) / 1e6);
  text += fmt::format("useful bytes a line {:.1f}, of weights {:.1f}; activation bytes for a weight byte {:.2f}; lines {:.2f} and bank rounds {:.2f} of the ideal\n", metrics.useful_bytes_per_line,
                      metrics.useful_weight_bytes_per_line, metrics.activation_bytes_per_weight_byte, metrics.line_factor, metrics.bank_conflict_factor);
  text += fmt::format("barriers {}, dependent loads {}, loads in flight {}; idle lanes {:.0f} %, divergent {:.0f} % of operations\n", metrics.barriers, metrics.dependent_loads, metrics.loads_in_flight,
                      100 * metrics.idle_lanes, 100 * metrics.divergence);
  for (const Finding& finding : report.findings) text += fmt::format("FOUND {}{}: {}\n", name_of(finding.kind), finding.count > 1 ? fmt::format(" ({} times)", finding.count) : "", finding.text);
  text += "\n| access | what | memory | times | bytes of lanes | lines of 64 | ideal | useful bytes a line | bank rounds | ideal |\n|:---|:---|:---|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const AccessCount* count : by_lines(report)) {
    const std::string useful = count->lines64 == 0 ? "" : fmt::format("{:.1f}", ratio(count->bytes, count->lines64));
    const auto or_nothing = [](std::uint64_t n, bool there) { return there ? fmt::format("{}", n) : std::string(); };
    const bool shared = done.module.variables[count->variable].space == Space::kShared;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", describe(done.module, count->place), name_of(count->kind), done.module.variables[count->variable].name, count->executions, count->lane_bytes,
                        or_nothing(count->lines64, !shared), or_nothing(count->ideal_lines64, !shared), useful, or_nothing(count->bank_rounds, shared), or_nothing(count->ideal_bank_rounds, shared));
  }
  return text;
}

std::string json_of(const SimulatedDispatch& done, const Metrics& metrics) {
  const Report& report = done.report;
  nlohmann::json json = {{"kernel", done.dispatch.label}, {"subgroup_size", report.subgroup_size}, {"grid", done.dispatch.grid}, {"workgroup_size", done.module.local_size},
                         {"operations", report.operations}, {"lane_operations", report.lane_operations},
                         {"useful_bytes_per_line", metrics.useful_bytes_per_line}, {"useful_weight_bytes_per_line", metrics.useful_weight_bytes_per_line},
                         {"activation_bytes_per_weight_byte", metrics.activation_bytes_per_weight_byte}, {"line_factor", metrics.line_factor}, {"bank_conflict_factor", metrics.bank_conflict_factor},
                         {"barriers", metrics.barriers}, {"dependent_loads", metrics.dependent_loads}, {"loads_in_flight", metrics.loads_in_flight},
                         {"idle_lanes", metrics.idle_lanes}, {"divergence", metrics.divergence}, {"findings", nlohmann::json::array()}, {"accesses", nlohmann::json::array()}};
  for (const Finding& finding : report.findings) json["findings"].push_back({{"kind", name_of(finding.kind)}, {"text", finding.text}, {"count", finding.count}});
  for (const AccessCount* count : by_lines(report)) {
    json["accesses"].push_back({{"place", describe(done.module, count->place)}, {"kind", name_of(count->kind)}, {"memory", done.module.variables[count->variable].name}, {"executions", count->executions},
                                {"lanes", count->lanes}, {"lane_bytes", count->lane_bytes}, {"bytes", count->bytes}, {"lines64", count->lines64}, {"ideal_lines64", count->ideal_lines64},
                                {"lines128", count->lines128}, {"ideal_lines128", count->ideal_lines128}, {"sectors32", count->sectors32}, {"ideal_sectors32", count->ideal_sectors32},
                                {"bank_rounds", count->bank_rounds}, {"ideal_bank_rounds", count->ideal_bank_rounds}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string picture_of(const SimulatedDispatch& done) {
  constexpr int kCell = 9, kLineWords = 16, kLinesAcross = 6, kGap = 8, kMargin = 12, kText = 16;
  constexpr int kLineWidth = kCell * kLineWords + kGap, kWidth = 2 * kMargin + kLinesAcross * kLineWidth;
  std::string body;
  int y = kMargin;
  for (const AddressSample& sample : done.report.samples) {
    const AccessCount& count = done.report.accesses[sample.access];
    // Of each line of 64 bytes that is touched, the lane that asks for each word first.
    std::map<std::int64_t, std::vector<int>> lines;
    for (std::size_t lane = 0; lane < sample.addresses.size(); ++lane) {
      if (sample.addresses[lane] < 0) continue;
      for (std::int64_t byte = sample.addresses[lane]; byte < sample.addresses[lane] + sample.lane_bytes; byte += 4) {
        std::vector<int>& words = lines[byte / 64];
        words.resize(kLineWords, -1);
        int& first = words[static_cast<std::size_t>(byte % 64 / 4)];
        if (first < 0) first = static_cast<int>(lane);
      }
    }
    y += kText;
    body += fmt::format("<text x=\"{}\" y=\"{}\">{} of {}, {}: {} lines of 64 bytes</text>\n", kMargin, y, name_of(count.kind), escaped(done.module.variables[count.variable].name), escaped(describe(done.module, count.place)), lines.size());
    y += 4;
    int column = 0;
    for (const auto& [line, words] : lines) {
      const int x = kMargin + column * kLineWidth;
      for (int word = 0; word < kLineWords; ++word) {
        const int lane = words[static_cast<std::size_t>(word)];
        const std::string fill = lane < 0 ? "#eee" : fmt::format("hsl({}, 70%, 60%)", lane * 360 / static_cast<int>(sample.addresses.size()));
        body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>byte {}{}</title></rect>\n", x + word * kCell, y, kCell - 1, kCell, fill, line * 64 + word * 4, lane < 0 ? "" : fmt::format(", lane {}", lane));
      }
      if (++column == kLinesAcross) column = 0, y += kCell + 3;
    }
    y += column == 0 ? 4 : kCell + 7;
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{2}</svg>\n", kWidth, y + kMargin, body);
}

}  // namespace rondo::simulator
