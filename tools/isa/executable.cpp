#include "tools/isa/executable.h"

#include <algorithm>
#include <cctype>

namespace rondo::isa {

namespace {

struct Meaning {
  std::string_view name;  ///< in lower case, as Mesa 22.3 to 26.1 have it
  std::optional<double> Executable::*field;
};

/// Several of one field are added.
constexpr Meaning kMeanings[] = {
    {"vgprs", &Executable::registers},
    {"max live registers", &Executable::registers},
    {"registers used", &Executable::registers},
    {"number of gprs", &Executable::registers},
    {"spilled vgprs", &Executable::spills},
    {"spilled sgprs", &Executable::spills},
    {"spills", &Executable::spills},
    {"spill count", &Executable::spills},
    {"stp count", &Executable::spills},
    {"spills to memory", &Executable::spills},
    {"scratch size", &Executable::scratch_bytes},
    {"scratch memory size", &Executable::scratch_bytes},
    {"slm size", &Executable::scratch_bytes},
    {"subgroups per simd", &Executable::occupancy},
    {"max waves per core", &Executable::occupancy},
    {"max warps/sm", &Executable::occupancy},
    {"instructions", &Executable::instructions},
    {"instruction count", &Executable::instructions},
    {"inverse throughput", &Executable::cost},
    {"cycles", &Executable::cost},
    {"cycle count", &Executable::cost},
    {"static cycle count", &Executable::cost},
};

LoopCost cost_of(const CompiledLoop& loop, double multiply_adds) {
  return {multiply_adds, loop.vector_instructions() / multiply_adds, loop.count(Kind::kMemory) / multiply_adds, loop.count(Kind::kShared) / multiply_adds, loop.count(Kind::kScratch) / multiply_adds};
}

/// The shortest loop that contains `loop`, or null.
const CompiledLoop* loop_around(const std::vector<CompiledLoop>& loops, const CompiledLoop& loop) {
  const CompiledLoop* found = nullptr;
  for (const CompiledLoop& one : loops) {
    if (one.innermost || one.first_line > loop.first_line || one.last_line < loop.last_line) continue;
    if (!found || one.last_line - one.first_line < found->last_line - found->first_line) found = &one;
  }
  return found;
}

/// The cost of a loop that the one around it runs `times`, and of that one, in which there are `multiply_adds` with those of the inner one.
LoopCost cost_of_both(const CompiledLoop& inner, const CompiledLoop& outer, double multiply_adds, double times) {
  const LoopCost each = cost_of(inner, multiply_adds / times), once = cost_of(outer, multiply_adds);
  return {once.multiply_adds, each.vector + once.vector, each.memory + once.memory, each.shared + once.shared, each.scratch + once.scratch};
}

/// Whether a compiled loop can hold `multiply_adds`: compilers may save one or the other.
bool holds(const CompiledLoop& loop, double multiply_adds) { return multiply_adds > 0 && loop.multiply_adds >= 0.9 * multiply_adds; }

}  // namespace

void fill_from_statistics(Executable& executable) {
  for (const Statistic& statistic : executable.statistics) {
    std::string name = statistic.name;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& meaning) { return meaning.name == name; });
    if (found == std::end(kMeanings)) continue;
    std::optional<double>& field = executable.*found->field;
    field = field.value_or(0) + statistic.value;
  }
}

std::vector<LoopCost> cost_of_loops(const Executable& executable, std::span<const runtime::InnerLoop> registered) {
  std::vector<LoopCost> costs(registered.size());
  for (const CompiledLoop& loop : executable.loops) {
    if (!loop.innermost) continue;
    std::size_t of = registered.size();
    double multiply_adds = 0;
    for (std::size_t i = 0; i < registered.size(); ++i) {
      for (const double candidate : {static_cast<double>(registered[i].multiply_adds), static_cast<double>(registered[i].unrolled)}) {
        // Of two that are alike each gets one.
        const bool other = of < i && candidate == multiply_adds && costs[of].multiply_adds > 0 && costs[i].multiply_adds == 0;
        if (holds(loop, candidate) && (candidate > multiply_adds || other)) of = i, multiply_adds = candidate;
      }
    }
    if (of == registered.size()) continue;
    LoopCost cost = cost_of(loop, multiply_adds);
    if (registered[of].times > 0 && multiply_adds < registered[of].unrolled) {
      const CompiledLoop* const outer = loop_around(executable.loops, loop);
      if (!outer) continue;
      cost = cost_of_both(loop, *outer, registered[of].unrolled, registered[of].times);
    }
    if (costs[of].multiply_adds == 0 || cost.vector > costs[of].vector) costs[of] = cost;
  }
  std::erase_if(costs, [](const LoopCost& cost) { return cost.multiply_adds == 0; });
  return costs;
}

std::vector<LoopCost> cost_of_largest_loops(const Executable& executable, std::uint32_t products) {
  double most = 0;
  for (const CompiledLoop& loop : executable.loops) most = std::max(most, loop.multiply_adds);
  std::vector<LoopCost> costs;
  for (const CompiledLoop& loop : executable.loops) {
    if (products != 0 && loop.multiply_adds == most && holds(loop, products)) return {cost_of(loop, products)};
    if (products == 0 && most > 0 && loop.multiply_adds >= 0.6 * most) costs.push_back(cost_of(loop, loop.multiply_adds));
  }
  return costs;
}

std::optional<double> vector_per_multiply_add(const std::vector<LoopCost>& loops) {
  if (loops.empty()) return std::nullopt;
  double sum = 0;
  for (const LoopCost& loop : loops) sum += loop.vector;
  return sum / static_cast<double>(loops.size());
}

}  // namespace rondo::isa
