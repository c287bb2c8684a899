#include "models/graph_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/float16.h"
#include "models/graph_builder.h"
#include "models/nearest.h"
#include "models/printable.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"

namespace rondo::models {

namespace {

// One segment works while the next one waits behind it, so that the queue runs dry for no host.
constexpr std::size_t kMaxInFlight = 2;

bool is_fixed(InputForm form) { return form == InputForm::kWeight || form == InputForm::kConstant; }

const char* name_of(Type type) { return type == Type::kI32 ? "i32" : type == Type::kF16 ? "f16" : type == Type::kQ8_0 ? "q8_0" : "f32"; }

std::uint64_t dense_bytes(const graph::Tensor& tensor) {
  std::uint64_t n = tensor.type == graph::Type::kQ8_0 ? 1 : static_cast<std::uint64_t>(graph::element_bytes(tensor.type));
  for (const std::uint64_t extent : dense_shape(tensor)) n *= extent;
  return n;
}

}  // namespace

Result<std::unique_ptr<GraphProgram>> GraphProgram::compile(std::shared_ptr<runtime::Device> device, GraphFile file, const ProgramOptions& options) {
  GraphRunOptions lowering;
  lowering.lowering.fusion = options.fusion;
  lowering.lowering.forced_kernels = options.kernels;
  lowering.lowering.quarantine = options.quarantine;
  lowering.lowering.activations = options.activations;
  RONDO_ASSIGN(GraphRun run, GraphRun::create(*device, std::move(file.graph), lowering));
  std::unique_ptr<GraphProgram> program(new GraphProgram(std::move(device), std::move(run)));
  program->describe(file);
  RONDO_TRY(program->fill(file));
  program->outputs_ = std::move(file.outputs);
  program->checks_ = std::move(file.checks);
  RONDO_TRY(program->prepare(options));
  return program;
}

void GraphProgram::describe(const GraphFile& file) {
  for (const StoredInput& stored : file.inputs) {
    const bool known = std::any_of(input_infos_.begin(), input_infos_.end(), [&](const ProgramTensor& info) { return info.name == stored.input.name; });
    if (stored.fixed || is_fixed(stored.form) || known) continue;
    input_infos_.push_back({stored.input.name, stored.input.type.name, public_shape(stored.input.shape), element_bytes_of(stored.input)});
  }
  for (const GraphFile::Output& output : file.outputs) {
    const graph::Tensor& tensor = run_.graph().tensor(output.tensor);
    output_infos_.push_back({output.name, graph::type_name(tensor.type), public_shape(tensor.shape), dense_bytes(tensor)});
  }
}

/// One input after the other, so that the host holds no more than the largest.
Status GraphProgram::fill(GraphFile& file) {
  runtime::Uploader uploader(run_.device());
  for (StoredInput& stored : file.inputs) {
    const bool given = static_cast<bool>(stored.elements.source.read);
    if (!given && is_fixed(stored.form)) {
      return Status(StatusCode::kNotFound, fmt::format("{}: weight '{}' has no file", run_.graph().name, printable(stored.input.name)));
    }
    if (stored.form == InputForm::kIntegers) {
      std::vector<std::byte>& bytes = integers_[stored.storage];
      bytes.resize(stored_bytes_of(stored.input, stored.form));
      if (given) RONDO_TRY(read_elements(stored.input, stored.form, stored.elements, bytes));
      RONDO_TRY(run_.write(uploader, stored.storage, bytes));
      if (!given) integers_.erase(stored.storage);
    } else if (given) {
      const auto known = file.contents.find(stored.storage);
      if (known != file.contents.end() && stored.form != InputForm::kWeight) {
        RONDO_TRY(run_.write(uploader, stored.storage, known->second));
      } else {
        RONDO_ASSIGN(const std::vector<std::byte> bytes, kernel_bytes(run_.graph(), stored));
        RONDO_TRY(run_.write(uploader, stored.storage, bytes));
      }
    }
    if (stored.fixed || is_fixed(stored.form)) continue;
    const bool cache = run_.graph().storage(stored.storage).kind == graph::StorageKind::kCache;
    staged_.push_back({std::move(stored), {}, given || cache, false, cache && !given});
  }
  RONDO_TRY(run_.write(uploader, run_.graph().state, file.contents[run_.graph().state]));
  return run_.finish_writes(uploader);
}

Status GraphProgram::prepare(const ProgramOptions& options) {
  runtime::Device& device = run_.device();
  std::uint64_t total_bytes = 0;
  for (const GraphFile::Output& output : outputs_) {
    const graph::StorageId storage = run_.graph().tensor(output.tensor).storage;
    if (std::any_of(readbacks_.begin(), readbacks_.end(), [&](const Readback& one) { return one.storage == storage; })) continue;
    readbacks_.push_back({storage, total_bytes});
    total_bytes += (run_.graph().storage(storage).size_bytes + 255) / 256 * 256;
  }
  RONDO_ASSIGN(readback_, runtime::Buffer::create(device, total_bytes, runtime::MemoryIntent::kReadback, "outputs"));
  profile_ = options.profile;
  const runtime::Program& program = run_.program();
  if (!program.dispatches.empty()) {
    RONDO_TRY(device.kernels().create_all(program.kernels, options.executor));
    if (profile_) {
      RONDO_ASSIGN(timestamps_, runtime::TimestampPool::create(device, static_cast<std::uint32_t>(program.dispatches.size())));
    }
    RONDO_ASSIGN(recording_, run_.record_cut(1e3 * options.max_segment_us, profile_ ? &timestamps_ : nullptr));
  }
  // Views of inputs alone have no dispatch; their copies are a run.
  n_segments_ = std::max<std::size_t>(recording_.command_buffers().size(), 1);
  values_.reserve(n_segments_);
  batch_.reserve(3);
  return {};
}

std::uint64_t GraphProgram::device_bytes() const {
  std::uint64_t total = 0;
  for (const runtime::Buffer& buffer : run_.buffers()) total += buffer.size_bytes();
  return total;
}

Status GraphProgram::idle(const char* what) const {
  if (!running_) return {};
  return Status(StatusCode::kFailedPrecondition, fmt::format("{}: {} while a run is in flight; wait for it first", run_.graph().name, what));
}

Status GraphProgram::stage(Staged& staged, const InputElements& elements) {
  const std::uint64_t size_bytes = stored_bytes_of(staged.stored.input, staged.stored.form);
  if (!staged.buffer.handle()) {
    RONDO_ASSIGN(staged.buffer, runtime::Buffer::create(run_.device(), (size_bytes + 3) / 4 * 4, runtime::MemoryIntent::kUpload, staged.stored.input.name.c_str()));
  }
  std::span<std::byte> out(staged.buffer.mapped(), size_bytes);
  RONDO_TRY(read_elements(staged.stored.input, staged.stored.form, elements, out));
  RONDO_TRY(staged.buffer.flush(0, size_bytes));
  staged.dirty = true;
  staged.zero = false;
  return {};
}

Status GraphProgram::set_input(std::string_view name, std::optional<Type> type, std::span<const std::byte> bytes) {
  RONDO_TRY(idle("set_input"));
  const auto refuse = [&](StatusCode code, const std::string& message) { return Status(code, fmt::format("{}: input '{}' {}", run_.graph().name, printable(name), message)); };
  const auto info = std::find_if(input_infos_.begin(), input_infos_.end(), [&](const ProgramTensor& one) { return one.name == name; });
  if (info == input_infos_.end()) {
    std::vector<std::string_view> names;
    for (const ProgramTensor& one : input_infos_) names.push_back(one.name);
    return refuse(StatusCode::kNotFound, "is none that a node reads and that can be set" + suggest(name, names));
  }
  if (type && info->type != name_of(*type)) return refuse(StatusCode::kInvalidArgument, fmt::format("is {}, but {} is given", info->type, name_of(*type)));
  const auto wanted = [&] {
    graph::Shape shape;
    for (int axis = 0; axis < info->shape.rank; ++axis) shape[shape.rank++] = info->shape[axis];
    return fmt::format("is {} {}, {} bytes, but {} are given", info->type, to_string(shape), info->size_bytes, bytes.size());
  };
  if (bytes.size() != info->size_bytes) return refuse(StatusCode::kInvalidArgument, wanted());
  const InputElements elements{memory_source(bytes, std::string(name)), 0};
  for (Staged& staged : staged_) {
    if (staged.stored.input.name != name) continue;
    if (staged.stored.form == InputForm::kIntegers) {
      StorageBytes changed;
      std::vector<std::byte>& words = changed[staged.stored.storage];
      words.resize(stored_bytes_of(staged.stored.input, staged.stored.form));
      RONDO_TRY(read_elements(staged.stored.input, staged.stored.form, elements, words));
      RONDO_TRY(check_ranges(checks_, changed));
      integers_[staged.stored.storage] = std::move(words);
      integers_changed_ = true;
    }
    RONDO_TRY(stage(staged, elements));
    staged.set = true;
  }
  return {};
}

Status GraphProgram::reset_caches() {
  RONDO_TRY(idle("reset_caches"));
  for (Staged& staged : staged_) {
    if (run_.graph().storage(staged.stored.storage).kind != graph::StorageKind::kCache) continue;
    if (staged.stored.elements.source.read) {
      RONDO_TRY(stage(staged, staged.stored.elements));
    } else {
      staged.zero = true;
      staged.dirty = false;
    }
  }
  return {};
}

/// Null where nothing is to be copied.
Result<VkCommandBuffer> GraphProgram::record_before() {
  if (std::none_of(staged_.begin(), staged_.end(), [](const Staged& staged) { return staged.dirty || staged.zero; })) return VkCommandBuffer{VK_NULL_HANDLE};
  RONDO_TRY(before_.begin());
  for (Staged& staged : staged_) {
    const runtime::BufferRange& place = run_.graph().storage(staged.stored.storage).place;
    if (staged.dirty) before_.copy(staged.buffer, 0, run_.buffer_of(staged.stored.storage), place.offset_bytes, stored_bytes_of(staged.stored.input, staged.stored.form));
    if (staged.zero) before_.fill(run_.buffer_of(staged.stored.storage), 0, place.offset_bytes, place.size_bytes);
  }
  return before_.end();
}

Result<VkCommandBuffer> GraphProgram::record_after() {
  RONDO_TRY(after_.begin());
  for (const Readback& one : readbacks_) {
    const graph::Storage& storage = run_.graph().storage(one.storage);
    after_.copy(run_.buffer_of(one.storage), storage.place.offset_bytes, readback_, one.offset_bytes, storage.size_bytes);
  }
  return after_.end();
}

Status GraphProgram::submit() {
  RONDO_TRY(idle("submit"));
  for (const Staged& staged : staged_) {
    if (!staged.set) return Status(StatusCode::kFailedPrecondition, fmt::format("{}: input '{}' was never set", run_.graph().name, printable(staged.stored.input.name)));
  }
  if (integers_changed_) RONDO_TRY(check_integers(checks_, integers_));
  integers_changed_ = false;
  RONDO_ASSIGN(before_commands_, record_before());
  RONDO_ASSIGN(after_commands_, record_after());
  next_segment_ = 0;
  values_.clear();
  running_ = true;
  ran_ = false;
  const Status submitted = advance();
  if (!submitted.ok()) running_ = !values_.empty();
  if (!values_.empty()) {
    for (Staged& staged : staged_) staged.dirty = staged.zero = false;
  }
  return submitted;
}

Status GraphProgram::submit_next() {
  batch_.clear();
  if (next_segment_ == 0 && before_commands_) batch_.push_back(before_commands_);
  if (!recording_.command_buffers().empty()) batch_.push_back(recording_.command_buffers()[next_segment_]);
  if (next_segment_ + 1 == n_segments_) batch_.push_back(after_commands_);
  const runtime::Batch batch{batch_};
  RONDO_ASSIGN(const std::uint64_t value, run_.device().submit({&batch, 1}));
  values_.push_back(value);
  ++next_segment_;
  return {};
}

Status GraphProgram::advance() {
  if (!running_) return {};
  RONDO_ASSIGN(const std::uint64_t done, run_.device().completed_value());
  std::size_t in_flight = static_cast<std::size_t>(std::count_if(values_.begin(), values_.end(), [&](std::uint64_t value) { return value > done; }));
  for (; in_flight < kMaxInFlight && next_segment_ < n_segments_; ++in_flight) RONDO_TRY(submit_next());
  if (in_flight > 0) return {};
  RONDO_TRY(readback_.invalidate(0, readback_.size_bytes()));
  running_ = false;
  ran_ = true;
  return {};
}

Status GraphProgram::wait(std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  while (running_) {
    RONDO_TRY(advance());
    if (!running_) break;
    // The earliest of what is in flight, behind which there may be more to submit.
    RONDO_ASSIGN(const std::uint64_t done, run_.device().completed_value());
    const auto next = std::find_if(values_.begin(), values_.end(), [&](std::uint64_t value) { return value > done; });
    if (next == values_.end()) continue;
    const auto passed = Clock::now() - start;
    if (passed >= timeout) return Status(StatusCode::kTimeout, fmt::format("{}: the run has not ended yet", run_.graph().name));
    const Status waited = run_.device().wait(*next, static_cast<std::uint64_t>((timeout - passed).count()));
    if (!waited.ok() && waited.code() != StatusCode::kTimeout) return waited;
  }
  return {};
}

const std::byte* GraphProgram::bytes_after(graph::StorageId storage) const {
  const auto found = std::find_if(readbacks_.begin(), readbacks_.end(), [&](const Readback& one) { return one.storage == storage; });
  return readback_.mapped() + found->offset_bytes;
}

std::vector<std::byte> GraphProgram::elements(std::size_t index) const {
  const graph::Tensor& tensor = run_.graph().tensor(outputs_[index].tensor);
  return dense_elements(tensor, {bytes_after(tensor.storage), run_.graph().storage(tensor.storage).size_bytes});
}

Status GraphProgram::read(std::string_view name, std::optional<Type> type, std::span<std::byte> out) const {
  RONDO_TRY(idle("read"));
  const auto refuse = [&](StatusCode code, const std::string& message) { return Status(code, fmt::format("{}: output '{}' {}", run_.graph().name, printable(name), message)); };
  const auto info = std::find_if(output_infos_.begin(), output_infos_.end(), [&](const ProgramTensor& one) { return one.name == name; });
  if (info == output_infos_.end()) {
    std::vector<std::string_view> names;
    for (const ProgramTensor& one : output_infos_) names.push_back(one.name);
    return refuse(StatusCode::kNotFound, "does not exist" + suggest(name, names));
  }
  if (!ran_) return refuse(StatusCode::kFailedPrecondition, "can't be read before a run has ended");
  const auto index = static_cast<std::size_t>(info - output_infos_.begin());
  const graph::Tensor& tensor = run_.graph().tensor(outputs_[index].tensor);
  const bool widen = type == Type::kF32 && tensor.type == graph::Type::kF16;
  if (type && !widen && info->type != name_of(*type)) return refuse(StatusCode::kInvalidArgument, fmt::format("is {}, but {} is asked for", info->type, name_of(*type)));
  const std::uint64_t expected = widen ? 2 * info->size_bytes : info->size_bytes;
  if (out.size() != expected) {
    return refuse(StatusCode::kInvalidArgument, fmt::format("is {} {}, which takes {} bytes, but there is room for {}", info->type, to_string(tensor.shape), expected, out.size()));
  }
  if (!widen && tensor.type != graph::Type::kQ8_0 && tensor.is_contiguous()) {
    std::memcpy(out.data(), bytes_after(tensor.storage) + tensor.offset_elements * graph::element_bytes(tensor.type), out.size());
    return {};
  }
  const std::vector<std::byte> dense = elements(index);
  if (!widen) {
    std::memcpy(out.data(), dense.data(), out.size());
    return {};
  }
  for (std::size_t i = 0; i < dense.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, dense.data() + 2 * i, 2);
    const float value = graph::half_to_float(bits);
    std::memcpy(out.data() + 4 * i, &value, 4);
  }
  return {};
}

Result<ProfiledStep> GraphProgram::take_profile() {
  ProfiledStep step{"graph", {}};
  if (!profile_ || !ran_ || run_.program().dispatches.empty()) return step;
  RONDO_ASSIGN(const std::vector<double> times, timestamps_.read());
  for (std::size_t i = 0; i + 1 < times.size(); ++i) step.dispatches.push_back({run_.program().dispatches[i].label, 1e-3 * times[i], 1e-3 * times[i + 1]});
  return step;
}

}  // namespace rondo::models

namespace rondo {

Program::Program(std::unique_ptr<models::GraphProgram> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

namespace {

Status moved_from() { return Status(StatusCode::kFailedPrecondition, "program: was moved from"); }

}  // namespace

Result<Program> Program::compile(Device& device, Graph graph, const ProgramOptions& options) {
  RONDO_TRY(graph.status());
  if (!device.shared()) return Status(StatusCode::kFailedPrecondition, "program: the Device is empty; it was moved from");
  if (!(options.max_segment_us > 0)) return Status(StatusCode::kInvalidArgument, fmt::format("program: max_segment_us is {}, but must be above 0", options.max_segment_us));
  RONDO_ASSIGN(models::GraphFile file, graph.internal()->finish());
  RONDO_ASSIGN(std::unique_ptr<models::GraphProgram> impl, models::GraphProgram::compile(device.shared(), std::move(file), options));
  return Program(std::move(impl));
}

std::span<const ProgramTensor> Program::inputs() const { return impl_ ? impl_->inputs() : std::span<const ProgramTensor>(); }
std::span<const ProgramTensor> Program::outputs() const { return impl_ ? impl_->outputs() : std::span<const ProgramTensor>(); }
std::uint64_t Program::device_bytes() const { return impl_ ? impl_->device_bytes() : 0; }
std::uint32_t Program::n_dispatches() const { return impl_ ? impl_->n_dispatches() : 0; }

Status Program::set_input(std::string_view name, std::span<const float> values) { return impl_ ? impl_->set_input(name, Type::kF32, std::as_bytes(values)) : moved_from(); }
Status Program::set_input(std::string_view name, std::span<const std::int32_t> values) { return impl_ ? impl_->set_input(name, Type::kI32, std::as_bytes(values)) : moved_from(); }
Status Program::set_input(std::string_view name, std::span<const std::byte> bytes) { return impl_ ? impl_->set_input(name, std::nullopt, bytes) : moved_from(); }
Status Program::reset_caches() { return impl_ ? impl_->reset_caches() : moved_from(); }

Status Program::submit() { return impl_ ? impl_->submit() : moved_from(); }
Status Program::advance() { return impl_ ? impl_->advance() : moved_from(); }
bool Program::running() const { return impl_ && impl_->running(); }
Status Program::wait(std::chrono::nanoseconds timeout) { return impl_ ? impl_->wait(timeout) : moved_from(); }
Status Program::run_and_wait() {
  RONDO_TRY(submit());
  return wait(std::chrono::nanoseconds::max());
}

Status Program::read(std::string_view name, std::span<float> out) const { return impl_ ? impl_->read(name, Type::kF32, std::as_writable_bytes(out)) : moved_from(); }
Status Program::read(std::string_view name, std::span<std::int32_t> out) const { return impl_ ? impl_->read(name, Type::kI32, std::as_writable_bytes(out)) : moved_from(); }
Status Program::read(std::string_view name, std::span<std::byte> out) const { return impl_ ? impl_->read(name, std::nullopt, out) : moved_from(); }

Result<ProfiledStep> Program::take_profile() {
  if (!impl_) return moved_from();
  return impl_->take_profile();
}

}  // namespace rondo
