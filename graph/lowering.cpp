#include "graph/lowering.h"

#include <algorithm>
#include <limits>

#include "graph/operator.h"
#include "runtime/fmt.h"

namespace rondo::graph {

Lowering::Lowering(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options)
    : graph_(graph), caps_(caps), options_(options) {
  if (options.cores != 0) caps_.cores = options.cores;
  if (!options.joins_splits) caps_.device_scope = false;
  program_.name = graph.name;
}

namespace {

std::string_view find_text(const std::map<std::string, std::string, std::less<>>& texts, std::string_view key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

std::string_view Lowering::forced_kernel(std::string_view op) const { return find_text(options_.forced_kernels, op); }
std::string_view Lowering::tuned_kernel(std::string_view choice) const { return find_text(options_.tuned, choice); }
std::string_view Lowering::measured_kernel(std::string_view op) const { return find_text(options_.measured, op); }

bool Lowering::is_quarantined(std::string_view label) const {
  return std::find(options_.quarantine.begin(), options_.quarantine.end(), label) != options_.quarantine.end();
}

std::string Lowering::find_quarantined(std::size_t first) const {
  for (std::size_t i = first; i < program_.dispatches.size(); ++i) {
    if (is_quarantined(program_.dispatches[i].label)) return program_.dispatches[i].label;
  }
  return "";
}

std::uint32_t Lowering::rows_per_sequence(std::int64_t n_rows) const {
  return static_cast<std::uint32_t>((n_rows + graph_.n_sequences - 1) / graph_.n_sequences);
}

std::uint64_t Lowering::append_bytes(TensorId id, std::uint64_t size_bytes) {
  std::uint64_t& all = graph_.storage(tensor(id).storage).size_bytes;
  const std::uint64_t before = (all + 15) / 16 * 16;
  all = before + size_bytes;
  return before;
}

StorageId Lowering::scratch(std::uint64_t size_bytes, const char* what) {
  Storage storage;
  storage.name = what;
  storage.size_bytes = size_bytes;
  return graph_.add_storage(std::move(storage));
}

TensorId Lowering::scratch_tensor(const Shape& shape, Type type, const char* what) {
  return graph_.add_tensor(what, StorageKind::kActivation, type, shape);
}

runtime::Shader Lowering::module_for(runtime::Shader shader, Type activations) {
  if (activations != Type::kF16) return shader;
  const runtime::Shader variant = runtime::f16_variant(shader);
  if (variant == shader) missing_ = "a kernel that is not there";
  else if (!caps_.storage16) missing_ = fmt::format("16-bit storage (storageBuffer16BitAccess), which device {} does not have; those in f32 need none", caps_.name);
  return variant;
}

void Lowering::emit(std::string label, Code code, std::span<const std::uint32_t> constants,
                    std::span<const Argument> arguments, std::span<const std::byte> push, std::array<std::uint32_t, 3> grid,
                    runtime::Cost cost, runtime::Access state_access) {
  const auto exceeds = [&](const char* what, std::size_t found, std::size_t most) {
    if (found > most) excess_ = fmt::format("{}: {} {} but a kernel takes {}", label, found, what, most);
    return found > most;
  };
  if (exceeds("specialization constants", constants.size(), runtime::kMaxSpecialization) || exceeds("bindings", arguments.size() + 1, runtime::kMaxBindings)) return;
  runtime::Kernel kernel;
  kernel.shader = code.shader;
  kernel.subgroup_size = code.subgroup_size;
  std::copy(constants.begin(), constants.end(), kernel.constants.begin());
  kernel.n_constants = static_cast<std::uint32_t>(constants.size());
  kernel.n_bindings = static_cast<std::uint32_t>(arguments.size() + 1);
  kernel.push_bytes = static_cast<std::uint32_t>(push.size());

  auto found = std::find(program_.kernels.begin(), program_.kernels.end(), kernel);
  if (found == program_.kernels.end()) found = program_.kernels.insert(found, kernel);

  runtime::Dispatch dispatch;
  dispatch.kernel = static_cast<std::uint32_t>(found - program_.kernels.begin());
  dispatch.push.assign(push.begin(), push.end());
  dispatch.grid = grid;
  dispatch.cost = cost;
  dispatch.label = std::move(label);
  dispatch.choice = choice_;
  program_.dispatches.push_back(std::move(dispatch));

  std::vector<Argument>& kept = arguments_.emplace_back();
  kept.push_back({graph_.state, state_access});
  for (const Argument& argument : arguments) {
    const bool absent = argument.storage == kNone;
    kept.push_back(absent ? Argument{graph_.state, runtime::Access::kRead} : argument);
  }
}

const runtime::BufferRange& Lowering::place_of(const Argument& argument) const {
  const Storage& storage = graph_.storage(argument.storage);
  return storage.pieces.empty() ? storage.place : storage.pieces[argument.piece].place;
}

Result<std::vector<StoragePiece>> Lowering::cache_pieces(TensorId id) const {
  const Tensor& cache = tensor(id);
  const Storage& storage = graph_.storage(cache.storage);
  if (storage.pieces.empty()) return std::vector<StoragePiece>{{0, cache.shape[1], storage.place}};
  if (cache.shape[0] != 1 || cache.offset_elements != 0) {
    return Status(StatusCode::kUnsupported, fmt::format("{} is in {} pieces, which is there for one sequence only", storage.name, storage.pieces.size()));
  }
  return storage.pieces;
}

Status Lowering::check_grids_and_ranges() const {
  for (std::size_t i = 0; i < program_.dispatches.size(); ++i) {
    const runtime::Dispatch& dispatch = program_.dispatches[i];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (dispatch.grid[axis] <= caps_.max_grid[axis]) continue;
      return Status(StatusCode::kUnsupported, fmt::format("{}: {} needs {} workgroups but device {} allows {}", graph_.name,
                                                          dispatch.label, dispatch.grid[axis], caps_.name, caps_.max_grid[axis]));
    }
    for (const Argument& argument : arguments_[i]) {
      const Storage& storage = graph_.storage(argument.storage);
      const std::uint64_t size_bytes = storage.pieces.empty() ? storage.size_bytes : place_of(argument).size_bytes;
      if (size_bytes <= caps_.max_storage_range_bytes) continue;
      return Status(StatusCode::kUnsupported, fmt::format("{}: {} binds {} of {} bytes, but a storage buffer on device {} can have {}", graph_.name,
                                                          dispatch.label, storage.name, size_bytes, caps_.name, caps_.max_storage_range_bytes));
    }
  }
  return {};
}

Result<Lowered> Lowering::finish() {
  if (!excess_.empty()) return Status(StatusCode::kInternal, excess_);
  RONDO_TRY(check_grids_and_ranges());
  std::vector<StorageId> owners;
  std::vector<Lifetime> lifetimes;
  std::vector<std::int32_t> slot(graph_.n_storages(), -1);
  for (std::uint32_t i = 0; i < arguments_.size(); ++i) {
    for (const Argument& argument : arguments_[i]) {
      const Storage& storage = graph_.storage(argument.storage);
      if (storage.kind != StorageKind::kActivation) continue;
      std::int32_t& index = slot[static_cast<std::size_t>(argument.storage)];
      if (index < 0) {
        index = static_cast<std::int32_t>(lifetimes.size());
        lifetimes.push_back({storage.size_bytes, i, i});
        owners.push_back(argument.storage);
      }
      lifetimes[static_cast<std::size_t>(index)].last = i;
    }
  }
  Lowered lowered;
  const std::uint64_t alignment = caps_.storage_offset_alignment;
  const std::vector<std::uint64_t> offsets = plan_memory(lifetimes, alignment, lowered.activation_bytes);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    Storage& storage = graph_.storage(owners[i]);
    storage.place = {options_.activation_buffer, offsets[i], storage.size_bytes};
    lowered.unaliased_activation_bytes += (storage.size_bytes + alignment - 1) / alignment * alignment;
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    for (const Argument& argument : arguments_[i]) {
      program_.dispatches[i].bindings.push_back({place_of(argument), argument.access});
    }
  }
  place_barriers(program_);
  lowered.program = std::move(program_);
  return lowered;
}

namespace {

/// " (x)" of the node's first activation in f16, or "".
std::string f16_input(const Graph& graph, const Node& node) {
  for (const TensorId id : node.inputs) {
    if (id != kNone && graph.tensor(id).type == Type::kF16 && graph.storage_of(id).kind != StorageKind::kWeight) return fmt::format(" ({})", graph.tensor(id).name);
  }
  return "";
}

bool has_kernel(Op op, std::string_view name) {
  const auto kernels = operator_of(op).kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const char* kernel) { return name == kernel; });
}

/// Every forced kernel exists.
Status check_forced_kernels(const LoweringOptions& options) {
  for (const auto& forced : options.forced_kernels) {
    const std::string& op_name = forced.first;
    const std::string& kernel_name = forced.second;
    const std::optional<Op> op = find_operator(op_name);
    if (!op) return Status(StatusCode::kInvalidArgument, fmt::format("kernel {}={}: there is no operator {}", op_name, kernel_name, op_name));
    if (has_kernel(*op, kernel_name)) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("kernel {}={}: {} has the kernels {}", op_name, kernel_name, op_name, fmt::join(operator_of(*op).kernels, ", ")));
  }
  return {};
}

/// A text from outside on one line, cut.
std::string shown(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

bool is_type(std::string_view name) {
  const auto is_named = [&](Type type) { return name == type_name(type); };
  return std::any_of(std::begin(kWeightTypes), std::end(kWeightTypes), is_named);
}

std::vector<std::string> split_words(const std::string& label) {
  std::vector<std::string> words(1);
  for (const char c : label) {
    if (c == ' ') words.emplace_back();
    else words.back() += c;
  }
  return words;
}

/// Every label in quarantine is one that a dispatch may have: an operator, one of its kernels where it has several, a type.
Status check_quarantine(const LoweringOptions& options) {
  for (const std::string& label : options.quarantine) {
    const auto refuse = [&](const std::string& why) { return Status(StatusCode::kInvalidArgument, fmt::format("quarantine: '{}': {}", shown(label), why)); };
    const std::vector<std::string> words = split_words(label);
    const std::optional<Op> op = find_operator(words[0]);
    if (!op) return refuse(fmt::format("there is no operator '{}'", shown(words[0])));
    const auto [kernels, typed] = std::pair(operator_of(*op).kernels, operator_of(*op).kernels_have_types);
    const std::size_t type_at = kernels.size() > 1 ? 2 : 1;
    if (type_at == 2 && (words.size() < 2 || !has_kernel(*op, words[1]))) return refuse(fmt::format("{} has the kernels {}", words[0], fmt::join(kernels, ", ")));
    if (typed && (words.size() != type_at + 1 || !is_type(words[type_at]))) return refuse("after the kernel comes one type, as in 'linear tiled q4_0'");
    if (!typed && words.size() != type_at) return refuse("that is not all that a kernel is called");
  }
  return {};
}

}  // namespace

Status replace_quarantined(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  if (options.quarantine.empty()) return {};
  std::vector<Node> nodes;
  for (const Node& node : std::vector<Node>(graph.nodes())) {
    const Operator& table = operator_of(node.op);
    bool replaced = false;
    if (table.decompose) {
      Lowering trial(graph, caps, options);
      replaced = table.lower(node, trial).ok() && !trial.find_quarantined(0).empty();
    }
    if (!replaced) nodes.push_back(node);
    else for (Node& simple : table.decompose(graph, node)) nodes.push_back(std::move(simple));
  }
  graph.nodes() = std::move(nodes);
  return graph.status();
}

Result<Lowered> lower(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  RONDO_TRY(validate(graph));
  if (options.fusion) RONDO_TRY(fuse(graph));
  RONDO_TRY(check_forced_kernels(options));
  RONDO_TRY(check_quarantine(options));
  RONDO_TRY(replace_quarantined(graph, caps, options));
  Lowering lowering(graph, caps, options);
  if (options.fusion) lowering.defer_norms(), lowering.defer_rotations(), lowering.share_rounding(), lowering.share_halves();
  for (const Node& node : graph.nodes()) {
    const Operator& table = operator_of(node.op);
    const std::size_t first = lowering.program_.dispatches.size();
    lowering.set_choice("");
    if (Status status = table.lower(node, lowering); !status.ok()) return status.with_prefix(fmt::format("[{}]", table.name));
    if (const std::string label = lowering.find_quarantined(first); !label.empty()) {
      return Status(StatusCode::kUnsupported, fmt::format("[{}] kernel '{}' is in quarantine on device {}, and no other can take its place", table.name, label, caps.name));
    }
    if (!lowering.excess_.empty()) return Status(StatusCode::kInternal, fmt::format("[{}] {}", table.name, lowering.excess_));
    if (lowering.missing_.empty()) continue;
    return Status(StatusCode::kUnsupported, fmt::format("[{}] activations in f16{} need {}", table.name, f16_input(graph, node), lowering.missing_));
  }
  return lowering.finish();
}

}  // namespace rondo::graph
