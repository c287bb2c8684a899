#include "tools/isa/disassembly.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "tools/isa/words.h"

namespace rondo::isa {

namespace {

/// The first rule whose prefix a mnemonic has is the one for it.
struct Rule {
  std::string_view prefix;
  Kind kind;
  double multiply_adds = 0;  ///< of a lane; products of matrices share theirs among all
};

constexpr Rule kAmd[] = {
    {"v_dot4", Kind::kDot, 4}, {"v_dot8", Kind::kDot, 8}, {"v_dot2", Kind::kDot, 2}, {"v_wmma_f32_16x16x16", Kind::kMatrix, 16 * 16 * 16}, {"v_wmma_f16_16x16x16", Kind::kMatrix, 16 * 16 * 16}, {"v_wmma", Kind::kMatrix}, {"v_swmmac", Kind::kMatrix}, {"v_mfma", Kind::kMatrix},
    {"v_pk_fma", Kind::kMultiplyAdd, 2}, {"v_pk_mul_f", Kind::kMultiply, 2}, {"v_pk_add_f", Kind::kFloat}, {"v_pk_m", Kind::kFloat},
    {"v_fma", Kind::kMultiplyAdd, 1}, {"v_mac_", Kind::kMultiplyAdd, 1}, {"v_mad_f", Kind::kMultiplyAdd, 1}, {"v_mad_mix", Kind::kMultiplyAdd, 1}, {"v_mul_f", Kind::kMultiply, 1}, {"v_mul_legacy", Kind::kMultiply, 1},
    {"v_cvt", Kind::kConvert}, {"v_cndmask", Kind::kSelect}, {"v_cmp", Kind::kSelect}, {"v_mov", Kind::kMove}, {"v_read", Kind::kMove}, {"v_write", Kind::kMove}, {"v_swap", Kind::kMove}, {"v_permlane", Kind::kMove},
    {"v_rcp", Kind::kSpecial}, {"v_exp", Kind::kSpecial}, {"v_log", Kind::kSpecial}, {"v_rsq", Kind::kSpecial}, {"v_sqrt", Kind::kSpecial}, {"v_sin", Kind::kSpecial}, {"v_cos", Kind::kSpecial},
    {"v_s_", Kind::kScalar}, {"v_add_f", Kind::kFloat}, {"v_sub_f", Kind::kFloat}, {"v_subrev_f", Kind::kFloat}, {"v_max_f", Kind::kFloat}, {"v_min_f", Kind::kFloat}, {"v_max3_f", Kind::kFloat}, {"v_min3_f", Kind::kFloat},
    {"v_med3_f", Kind::kFloat}, {"v_max_num", Kind::kFloat}, {"v_min_num", Kind::kFloat}, {"v_max3_num", Kind::kFloat}, {"v_ldexp", Kind::kFloat}, {"v_floor", Kind::kFloat}, {"v_fract", Kind::kFloat}, {"v_rndne", Kind::kFloat},
    {"v_trunc", Kind::kFloat}, {"v_ceil", Kind::kFloat}, {"v_div", Kind::kFloat}, {"v_", Kind::kInteger},
    {"scratch_", Kind::kScratch}, {"ds_", Kind::kShared}, {"buffer_", Kind::kMemory}, {"global_", Kind::kMemory}, {"flat_", Kind::kMemory}, {"image_", Kind::kMemory},
    {"s_barrier", Kind::kBarrier}, {"s_wait", Kind::kWait}, {"s_delay", Kind::kWait}, {"s_nop", Kind::kWait}, {"s_clause", Kind::kWait}, {"s_inst_prefetch", Kind::kWait}, {"s_set_inst_prefetch", Kind::kWait},
    {"s_cbranch", Kind::kBranch}, {"s_branch", Kind::kBranch}, {"s_endpgm", Kind::kBranch}, {"s_", Kind::kScalar},
};

constexpr Rule kAdreno[] = {
    {"mad.f", Kind::kMultiplyAdd, 1}, {"mul.f", Kind::kMultiply, 1}, {"dp4acc", Kind::kDot, 4}, {"dp2acc", Kind::kDot, 2},
    {"add.f", Kind::kFloat}, {"max.f", Kind::kFloat}, {"min.f", Kind::kFloat}, {"absneg.f", Kind::kFloat}, {"floor", Kind::kFloat}, {"ceil", Kind::kFloat}, {"rndne", Kind::kFloat}, {"trunc", Kind::kFloat}, {"sign.f", Kind::kFloat},
    {"cov", Kind::kConvert}, {"mov", Kind::kMove}, {"swz", Kind::kMove}, {"gat", Kind::kMove}, {"sct", Kind::kMove}, {"shfl", Kind::kMove}, {"sel", Kind::kSelect}, {"cmps", Kind::kSelect},
    {"rcp", Kind::kSpecial}, {"rsq", Kind::kSpecial}, {"hrsq", Kind::kSpecial}, {"exp2", Kind::kSpecial}, {"hexp2", Kind::kSpecial}, {"log2", Kind::kSpecial}, {"hlog2", Kind::kSpecial}, {"sin", Kind::kSpecial}, {"cos", Kind::kSpecial}, {"sqrt", Kind::kSpecial},
    {"isam", Kind::kMemory}, {"sam", Kind::kMemory}, {"ldib", Kind::kMemory}, {"stib", Kind::kMemory}, {"ldg", Kind::kMemory}, {"stg", Kind::kMemory}, {"resinfo", Kind::kMemory}, {"atomic", Kind::kMemory},
    {"ldc", Kind::kScalar}, {"stc", Kind::kScalar}, {"stsc", Kind::kScalar}, {"ldl", Kind::kShared}, {"stl", Kind::kShared}, {"ldp", Kind::kScratch}, {"stp", Kind::kScratch},
    {"bary", Kind::kInteger}, {"bar", Kind::kBarrier}, {"fence", Kind::kBarrier}, {"nop", Kind::kWait}, {"sy", Kind::kWait}, {"ss", Kind::kWait},
    {"br", Kind::kBranch}, {"jump", Kind::kBranch}, {"pred", Kind::kBranch}, {"bany", Kind::kBranch}, {"ball", Kind::kBranch}, {"getone", Kind::kBranch}, {"shp", Kind::kBranch}, {"kill", Kind::kBranch}, {"end", Kind::kBranch}, {"", Kind::kInteger},
};

constexpr Rule kNvidia[] = {
    {"ffma", Kind::kMultiplyAdd, 1}, {"hfma2", Kind::kMultiplyAdd, 2}, {"dfma", Kind::kMultiplyAdd, 1}, {"fmul", Kind::kMultiply, 1}, {"hmul2", Kind::kMultiply, 2}, {"idp", Kind::kDot, 4},
    {"hmma.m16n8k16", Kind::kMatrix, 16 * 8 * 16 / 32.0}, {"hmma.m16n8k8", Kind::kMatrix, 16 * 8 * 8 / 32.0}, {"hmma", Kind::kMatrix}, {"imma", Kind::kMatrix}, {"bmma", Kind::kMatrix}, {"fadd", Kind::kFloat}, {"hadd2", Kind::kFloat}, {"fmnmx", Kind::kFloat}, {"hmnmx", Kind::kFloat}, {"fswz", Kind::kFloat},
    {"f2f", Kind::kConvert}, {"f2i", Kind::kConvert}, {"i2f", Kind::kConvert}, {"i2i", Kind::kConvert}, {"frnd", Kind::kConvert}, {"fsetp", Kind::kSelect}, {"isetp", Kind::kSelect}, {"hsetp", Kind::kSelect}, {"fset", Kind::kSelect}, {"psetp", Kind::kSelect},
    {"plop3", Kind::kSelect}, {"sel", Kind::kSelect}, {"mov", Kind::kMove}, {"shfl", Kind::kMove}, {"r2ur", Kind::kMove}, {"s2r", Kind::kMove}, {"s2ur", Kind::kMove}, {"cs2r", Kind::kMove}, {"mufu", Kind::kSpecial},
    {"ld.shared", Kind::kShared}, {"st.shared", Kind::kShared}, {"ldsm", Kind::kShared}, {"atom.shared", Kind::kShared}, {"ld.local", Kind::kScratch}, {"st.local", Kind::kScratch}, {"ldc", Kind::kScalar},
    {"ld.", Kind::kMemory}, {"st.", Kind::kMemory}, {"atom", Kind::kMemory}, {"membar", Kind::kBarrier}, {"bar", Kind::kBarrier}, {"nop", Kind::kWait},
    {"bra", Kind::kBranch}, {"bssy", Kind::kBranch}, {"bsync", Kind::kBranch}, {"bclear", Kind::kBranch}, {"break", Kind::kBranch}, {"exit", Kind::kBranch}, {"warpsync", Kind::kBranch}, {"", Kind::kInteger},
};

constexpr Rule kIntel[] = {
    {"dp4a", Kind::kDot, 4}, {"dpas.8x8", Kind::kMatrix, 8 * 16}, {"dpas", Kind::kMatrix}, {"math", Kind::kSpecial}, {"sel", Kind::kSelect}, {"csel", Kind::kSelect}, {"cmp", Kind::kSelect}, {"frc", Kind::kFloat}, {"rnd", Kind::kFloat},
    {"sync", Kind::kWait}, {"nop", Kind::kWait}, {"while", Kind::kBranch}, {"break", Kind::kBranch}, {"if", Kind::kBranch}, {"else", Kind::kBranch}, {"endif", Kind::kBranch}, {"cont", Kind::kBranch}, {"halt", Kind::kBranch},
    {"join", Kind::kBranch}, {"goto", Kind::kBranch}, {"", Kind::kInteger},
};

template <std::size_t N>
Rule find_rule(const Rule (&rules)[N], std::string_view mnemonic) {
  for (const Rule& rule : rules) {
    if (mnemonic.substr(0, rule.prefix.size()) == rule.prefix) return rule;
  }
  return {"", Kind::kInteger};
}

struct Instruction {
  std::size_t line = 0;
  Kind kind = Kind::kInteger;
  double count = 1;
  double multiply_adds = 0;
};

/// A program as loops need it: instructions in order, and from which each branch goes back to which.
struct Listing {
  std::vector<Instruction> instructions;
  struct Branch {
    std::size_t from, to;  ///< indices of instructions
  };
  std::vector<Branch> back;
  struct Block {
    std::size_t first;                    ///< index of its first instruction
    std::vector<std::size_t> successors;  ///< indices of blocks
  };
  std::vector<Block> blocks;  ///< where the text has them, in place of `back`
};

std::optional<std::size_t> number_at(std::string_view text) {
  std::size_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// Calls `each` with the number of every line, from 1, and its text.
template <class Each>
void for_each_line(std::string_view text, Each each) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    each(number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Branches to labels, of which those that lie before are loops.
class Labels {
 public:
  void define(std::string_view label, const Listing& listing) { places_[std::string(label)] = listing.instructions.size(); }
  /// The instruction that was added last branches to `label`.
  void branch(std::string_view label, Listing& listing) const {
    const auto found = places_.find(label);
    if (found != places_.end()) listing.back.push_back({listing.instructions.size() - 1, found->second});
  }

 private:
  std::map<std::string, std::size_t, std::less<>> places_;
};

/// "BB7:", "\tv_fma_f32 v0, v1, v2, v3   ; encoding", "\ts_cbranch_scc1 BB7", "\t(then repeated 3 times)".
Listing read_amd(std::string_view text, std::uint32_t subgroup_size) {
  Listing listing;
  Labels labels;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    if (line.substr(0, 2) == "BB" && line.find(':') != std::string_view::npos) return labels.define(line.substr(0, line.find(':')), listing);
    if (line.empty() || line[0] != '\t') return;
    line = trimmed(line.substr(0, line.find(';')));
    constexpr std::string_view kRepeated = "(then repeated ";
    if (line.substr(0, kRepeated.size()) == kRepeated && !listing.instructions.empty()) {
      Instruction& last = listing.instructions.back();
      const double times = 1 + static_cast<double>(number_at(line.substr(kRepeated.size())).value_or(0));
      last.count *= times, last.multiply_adds *= times;
      return;
    }
    Instruction instruction{number};
    const std::size_t second = line.find("::");  // two operations as one instruction
    for (std::string_view rest : {line.substr(0, second), second == std::string_view::npos ? "" : line.substr(second + 2)}) {
      std::string mnemonic(take_word(rest));
      if (mnemonic.empty()) continue;
      if (mnemonic.substr(0, 7) == "v_dual_") mnemonic.erase(2, 5);
      const Rule rule = find_rule(kAmd, mnemonic);
      if (instruction.multiply_adds == 0) instruction.kind = rule.kind;
      instruction.multiply_adds += rule.kind == Kind::kMatrix ? rule.multiply_adds / subgroup_size : rule.multiply_adds;
    }
    listing.instructions.push_back(instruction);
    if (instruction.kind == Kind::kBranch) labels.branch(line.substr(std::min(line.find_last_of(" \t") + 1, line.size())), listing);
  });
  return listing;
}

/// "l127:", "(sy)(rpt2)(nop3) mad.f32 r0.x, r1.x, r2.x, r0.x", "br p0.y, #l127".
Listing read_adreno(std::string_view text) {
  Listing listing;
  Labels labels;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    if (line.empty() || line[0] == ';' || line[0] == '@' || line[0] == 'N') return;
    if (line[0] == 'l' && line.back() == ':') return labels.define(line.substr(0, line.size() - 1), listing);
    Instruction instruction{number};
    std::size_t n_waits = 0;
    for (line = trimmed(line); !line.empty() && line[0] == '('; line = trimmed(line.substr(line.find(')') + 1))) {
      const std::string_view flag = line.substr(1, line.find(')') - 1);
      if (flag.size() == line.size() - 1) break;
      if (flag.substr(0, 3) == "rpt") instruction.count = 1 + static_cast<double>(number_at(flag.substr(3)).value_or(0));
      if (flag.substr(0, 3) == "nop") n_waits = number_at(flag.substr(3)).value_or(0);
    }
    const Rule rule = find_rule(kAdreno, line.substr(0, line.find(' ')));
    instruction.kind = rule.kind;
    instruction.multiply_adds = rule.multiply_adds * instruction.count;
    if (n_waits) listing.instructions.push_back({number, Kind::kWait, static_cast<double>(n_waits)});
    listing.instructions.push_back(instruction);
    if (rule.kind == Kind::kBranch && line.find('#') != std::string_view::npos) labels.branch(line.substr(line.find('#') + 1), listing);
  });
  return listing;
}

/// "block 5 L7 [4, 8] -> {", "@!p0   r2 = ffma.ftz r3 r4 r5   // delay=4", "} -> [6, 5]": the numbers are those of blocks.
Listing read_nvidia(std::string_view text) {
  Listing listing;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    if (line.substr(0, 5) == "block") return listing.blocks.push_back({listing.instructions.size(), {}});
    if (line.substr(0, 1) == "}") {
      for (std::size_t at = line.find('['); at < line.size() && !listing.blocks.empty(); at = line.find(' ', at + 1)) {
        const std::optional<std::size_t> block = number_at(line.substr(at + 1));
        if (block) listing.blocks.back().successors.push_back(*block);
      }
      return;
    }
    line = trimmed(line.substr(0, line.find("//")));
    if (line.substr(0, 1) == "@") take_word(line);
    if (line.empty()) return;
    const std::size_t equals = line.find(" = ");
    const bool uniform = equals != std::string_view::npos && (line.substr(0, 2) == "ur" || line.substr(0, 2) == "up");
    if (equals != std::string_view::npos) line = line.substr(equals + 3);
    const Rule rule = find_rule(kNvidia, take_word(line));
    const bool vector = rule.kind <= Kind::kSpecial;
    listing.instructions.push_back({number, uniform && vector ? Kind::kScalar : rule.kind, 1, uniform ? 0 : rule.multiply_adds});
  });
  return listing;
}

/// The letters at the end of an operand, which are its type: "F" of "g87<1>F".
std::string_view type_of(std::string_view operand) {
  while (!operand.empty() && operand.back() == ',') operand.remove_suffix(1);
  const std::size_t last = operand.find_last_not_of("ABDFHQUVW");
  return last == std::string_view::npos ? operand : operand.substr(last + 1);
}
bool is_float(std::string_view type) { return type == "F" || type == "HF" || type == "DF" || type == "BF"; }

/// What kind a message is from its description: "slm MsgDesc: (load, ...".
Kind kind_of_message(std::string_view description) {
  const auto has = [&](std::string_view part) { return description.find(part) != std::string_view::npos; };
  if (has("gateway") || has("fence")) return Kind::kBarrier;
  if (has("slm") || has("Surface = 254") || has("bti 254")) return Kind::kShared;
  if (has("ts/btd")) return Kind::kBranch;  // the end
  // 253 is memory without a surface, which storage buffers have; newer chips have a surface (ss) for scratch.
  if (has("A64")) return Kind::kMemory;
  return has("Surface = 253") || has("bti 253") || has(", ss ") ? Kind::kScratch : Kind::kMemory;
}

/// "LABEL5:", "(+f0.0) mad(16)  g97<1>F  g99<8,8,1>F ...", "while(16)  JIP:  LABEL5", and behind send(16) a line about its message.
Listing read_intel(std::string_view text, std::uint32_t subgroup_size) {
  Listing listing;
  Labels labels;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    if (line.substr(0, 5) == "LABEL" && line.find(':') != std::string_view::npos) return labels.define(line.substr(0, line.find(':')), listing);
    if (const std::size_t message = line.find(" MsgDesc:"); message != std::string_view::npos && line[0] == ' ') {
      if (!listing.instructions.empty()) listing.instructions.back().kind = kind_of_message(line);
      return;
    }
    if (line.empty() || line[0] == ' ' || line.substr(0, 4) == "Push" || line.substr(0, 6) == "Native") return;
    if (line[0] == '(') line = trimmed(line.substr(std::min(line.find(')') + 1, line.size())));
    const std::size_t open = line.find('(');
    if (open == std::string_view::npos || line[0] < 'a' || line[0] > 'z') return;
    const std::size_t lanes = number_at(line.substr(open + 1)).value_or(1);
    const std::string_view mnemonic = line.substr(0, open), name = mnemonic.substr(0, 4) == "dpas" ? mnemonic : mnemonic.substr(0, mnemonic.find('.'));
    std::string_view rest = line.substr(std::min(line.find(')') + 1, line.size()));
    Rule rule = find_rule(kIntel, name);
    if (name == "mad" || name == "mul" || name == "add" || name == "mov" || name == "mac") {
      const std::string_view to = type_of(take_word(rest)), from = type_of(take_word(rest));
      if (name == "mov" && to != from && (is_float(to) || is_float(from))) rule.kind = Kind::kConvert;
      else if (name == "mov") rule.kind = Kind::kMove;
      else if (is_float(to)) rule = {"", name == "add" ? Kind::kFloat : name == "mul" ? Kind::kMultiply : Kind::kMultiplyAdd, name == "add" ? 0.0 : 1.0};
    } else if (name.substr(0, 4) == "send") {
      rule.kind = Kind::kMemory;
    }
    const bool vector = rule.kind <= Kind::kSpecial;
    const double part = lanes < subgroup_size ? static_cast<double>(lanes) / subgroup_size : 1.0;
    if (vector && lanes == 1) rule.kind = Kind::kScalar;
    const double count = vector && lanes > 1 ? part : 1.0;
    listing.instructions.push_back({number, rule.kind, count, rule.multiply_adds * count});
    if (name == "while") labels.branch(line.substr(std::min(line.find("LABEL"), line.size()), line.find_first_of(" \t", line.find("LABEL")) - line.find("LABEL")), listing);
  });
  return listing;
}

/// Loops of blocks that lie in any order: those from which a branch back to an earlier one can be reached, without that one.
std::vector<CompiledLoop> loops_of_blocks(const Listing& listing) {
  const std::size_t n = listing.blocks.size();
  std::vector<std::vector<std::size_t>> predecessors(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (const std::size_t next : listing.blocks[i].successors) {
      if (next < n) predecessors[next].push_back(i);
    }
  }
  std::map<std::size_t, std::vector<bool>> members;  // of the loop that begins with a block
  for (std::size_t first = 0; first < n; ++first) {
    std::vector<bool> found(n);
    std::vector<std::size_t> open;
    for (const std::size_t before : predecessors[first]) {
      if (before >= first) open.push_back(before);
    }
    if (open.empty()) continue;
    found[first] = true;
    while (!open.empty()) {
      const std::size_t block = open.back();
      open.pop_back();
      if (found[block]) continue;
      found[block] = true;
      open.insert(open.end(), predecessors[block].begin(), predecessors[block].end());
    }
    if (first == 0 || !found[0]) members[first] = found;  // else the branch went forward, to what lies before
  }
  std::vector<CompiledLoop> loops;
  for (const auto& [first, own] : members) {
    CompiledLoop loop;
    std::vector<bool> left = own;
    for (const auto& [other, inner] : members) {
      if (other == first || !own[other]) continue;
      loop.innermost = false;
      for (std::size_t i = 0; i < n; ++i) left[i] = left[i] && !inner[i];
    }
    for (std::size_t block = 0; block < n; ++block) {
      const std::size_t end = block + 1 < n ? listing.blocks[block + 1].first : listing.instructions.size();
      if (!own[block] || listing.blocks[block].first == end) continue;
      if (loop.first_line == 0) loop.first_line = listing.instructions[listing.blocks[block].first].line;
      loop.last_line = listing.instructions[end - 1].line;
      for (std::size_t i = listing.blocks[block].first; left[block] && i < end; ++i) loop.add(listing.instructions[i].kind, listing.instructions[i].count, listing.instructions[i].multiply_adds);
    }
    loops.push_back(loop);
  }
  return loops;
}

std::vector<CompiledLoop> loops_of(const Listing& listing) {
  if (!listing.blocks.empty()) return loops_of_blocks(listing);
  // Several branches back to one place are one loop.
  std::map<std::size_t, std::size_t> last_of;
  for (const Listing::Branch& branch : listing.back) last_of[branch.to] = std::max(last_of[branch.to], branch.from);
  std::vector<CompiledLoop> loops;
  for (const auto& [first, last] : last_of) {
    CompiledLoop loop;
    loop.first_line = listing.instructions[first].line;
    loop.last_line = listing.instructions[last].line;
    for (std::size_t i = first; i <= last;) {
      const auto inner = i == first ? last_of.end() : last_of.find(i);
      if (inner != last_of.end() && inner->second <= last) {
        loop.innermost = false;
        i = inner->second + 1;
        continue;
      }
      const Instruction& instruction = listing.instructions[i++];
      loop.add(instruction.kind, instruction.count, instruction.multiply_adds);
    }
    loops.push_back(loop);
  }
  return loops;
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr const char* kNames[kKinds] = {"multiply_add", "multiply", "dot", "matrix", "float", "integer", "convert", "select", "move", "special", "scalar", "memory", "shared", "scratch", "barrier", "wait", "branch"};
  return kNames[static_cast<std::size_t>(kind)];
}

double CompiledLoop::vector_instructions() const {
  double sum = 0;
  for (std::size_t kind = 0; kind <= static_cast<std::size_t>(Kind::kSpecial); ++kind) sum += counts[kind];
  return sum;
}

bool is_disassembly(std::string_view representation) {
  return representation == "Assembly" || representation == "GEN Assembly" || representation == "IR3 Assembly" || representation == "NAK assembly";
}

std::vector<CompiledLoop> find_loops(std::string_view representation, std::string_view text, std::uint32_t subgroup_size) {
  if (representation == "Assembly") return loops_of(read_amd(text, subgroup_size));
  if (representation == "GEN Assembly") return loops_of(read_intel(text, subgroup_size));
  if (representation == "IR3 Assembly") return loops_of(read_adreno(text));
  if (representation == "NAK assembly") return loops_of(read_nvidia(text));
  return {};
}

}  // namespace rondo::isa
