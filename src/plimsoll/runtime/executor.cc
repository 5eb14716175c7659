#include "plimsoll/runtime/executor.h"

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::runtime {

using step::Op;
using step::Operand;
using step::Phase;
using step::Stream;
using step::TensorId;

Executor::Executor(const step::Program& program, const step::MemoryPlan& plan,
                   const Backend& backend)
    : program_(program),
      plan_(plan),
      backend_(backend),
      memory_(backend.allocate(plan.arena)),
      events_(program.ops.size()) {
  launches_.reserve(program.ops.size());
  for (int s = 0; s < step::stream_count; ++s) {
    queues_[static_cast<size_t>(s)] = backend.queue(static_cast<Stream>(s));
  }
  for (const Op& op : program.ops) {
    std::vector<View> inputs, outputs;
    for (const Operand& operand : op.inputs) inputs.push_back(resolve(operand));
    for (const Operand& operand : op.outputs) outputs.push_back(resolve(operand));
    std::span<std::byte> workspace;
    if (op.workspace >= 0) workspace = resolve({op.workspace}).bytes();
    launches_.push_back(backend.prepare(op, {inputs, outputs, workspace}));
    several_ = several_ || op.stream != Stream::compute;
    for (const int other : op.after) {
      Event& event = events_[static_cast<size_t>(other)];
      if (!event) event = backend.make_event();
    }
  }
  if (!several_) return;
  for (Event& event : meeting_) event = backend.make_event();
}

View Executor::resolve(const Operand& operand) const {
  const step::TensorType type = type_of(program_, operand);
  const int64_t offset = plan_.offsets[static_cast<size_t>(operand.tensor)].count;
  return {memory_.get() + offset + bytes_of(type.format, operand.offset), type.format,
          type.shape.rows, type.shape.columns};
}

// Before a run no stream goes ahead of the compute stream, and after it that one of none: so what
// the host reads and writes in the compute stream is ordered with everything.
void Executor::meet(bool before) const {
  if (!several_) return;
  const Queue compute = queue_of(Stream::compute);
  if (before) backend_.record(compute, meeting_[0]);
  for (size_t s = 1; s < queues_.size(); ++s) {
    if (before) {
      backend_.wait(queues_[s], meeting_[0]);
    } else {
      backend_.record(queues_[s], meeting_[s]);
      backend_.wait(compute, meeting_[s]);
    }
  }
}

// An op that is passed over still waits and is waited for: what comes behind it on its stream, or
// waits for it, is ordered through it.
template <class Wanted>
void Executor::run_where(int begin, int end, const Wanted& wanted) const {
  meet(true);
  for (int i = begin; i < end; ++i) {
    const auto index = static_cast<size_t>(i);
    const Op& op = program_.ops[index];
    const Queue queue = queue_of(op.stream);
    for (const int other : op.after) {
      if (other >= begin) backend_.wait(queue, events_[static_cast<size_t>(other)]);
    }
    if (wanted(op)) launches_[index](queue);
    if (events_[index]) backend_.record(queue, events_[index]);
  }
  meet(false);
}

void Executor::run(Phase phase) const {
  run_where(0, static_cast<int>(launches_.size()), [&](const Op& op) { return op.phase == phase; });
}

void Executor::run_micro_step(MicroStep now) const {
  run_where(0, static_cast<int>(launches_.size()), [&](const Op& op) {
    if (op.when == step::When::first && !now.first) return false;
    if (op.when == step::When::last && !now.last) return false;
    return op.phase == Phase::forward || op.phase == Phase::recompute ||
           op.phase == Phase::backward;
  });
}

void Executor::run(int begin, int end) const {
  run_where(begin, end, [](const Op&) { return true; });
}

void Executor::read_bytes(TensorId id, std::span<std::byte> to, int64_t offset) const {
  const std::span<std::byte> all = resolve({id}).bytes();
  check(offset >= 0 && static_cast<size_t>(offset) + to.size() <= all.size(),
        fmt::format("a read outside {}", program_.tensor(id).name));
  backend_.copy_to_host(queue_of(Stream::compute), to, all.data() + offset);
}

void Executor::write_bytes(TensorId id, std::span<const std::byte> from, int64_t offset) const {
  const std::span<std::byte> all = resolve({id}).bytes();
  check(offset >= 0 && static_cast<size_t>(offset) + from.size() <= all.size(),
        fmt::format("a write outside {}", program_.tensor(id).name));
  backend_.copy_to_device(queue_of(Stream::compute), all.data() + offset, from);
}

void Executor::fill(TensorId id, std::byte value) const {
  const std::span<std::byte> all = resolve({id}).bytes();
  backend_.fill(queue_of(Stream::compute), all.data(), value, {static_cast<int64_t>(all.size())});
}

void Executor::synchronize() const { backend_.synchronize(queue_of(Stream::compute)); }

std::span<std::byte> Executor::host_view(TensorId id) const {
  return backend_.shares_host_memory() ? resolve({id}).bytes() : std::span<std::byte>();
}

}  // namespace plimsoll::runtime
