// Runs a program at the addresses of its memory plan.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "plimsoll/runtime/backend.h"
#include "plimsoll/step/memory_plan.h"

namespace plimsoll::runtime {

// Which micro-step of its step it is: ops may run in the first or the last only (step::When).
struct MicroStep {
  bool first = true;
  bool last = true;
};

class Executor {
 public:
  // Allocates the arena of the plan, resolves every operand to its address and prepares every op.
  // `program` must have its workspaces (with_workspaces); all three must outlive this. Nothing is
  // allocated after this.
  Executor(const step::Program& program, const step::MemoryPlan& plan, const Backend& backend);

  // Copies the elements of a tensor from element `first` on to the host, when all work before has
  // ended, or from the host, before all work after. `values` is anything that std::span takes; its
  // elements are the tensor's. The bytes of a tensor that is not persistent are valid only between
  // the ops of its lifetime.
  template <class Values>
  void read(step::TensorId id, Values&& values, int64_t first = 0) const {
    const std::span to(values);
    read_bytes(id, std::as_writable_bytes(to), first * static_cast<int64_t>(sizeof(to[0])));
  }
  template <class Values>
  void write(step::TensorId id, const Values& values, int64_t first = 0) const {
    const std::span from(values);
    write_bytes(id, std::as_bytes(from), first * static_cast<int64_t>(sizeof(from[0])));
  }
  void read_bytes(step::TensorId id, std::span<std::byte> to, int64_t offset = 0) const;
  void write_bytes(step::TensorId id, std::span<const std::byte> from, int64_t offset = 0) const;

  // Sets every byte of a tensor.
  void fill(step::TensorId id, std::byte value) const;

  // Runs the ops of one phase, in order.
  void run(step::Phase phase) const;

  // Forward, recomputation and backward ops, in program order: one micro-step.
  void run_micro_step(MicroStep now = {}) const;

  // Ops [begin, end).
  void run(int begin, int end) const;

  // Returns when everything that was run has ended. The others return when it is in its queues.
  void synchronize() const;

  Bytes allocated() const { return plan_.arena; }

  // The bytes of a tensor, for a thread beside the run; empty where the host cannot address them.
  std::span<std::byte> host_view(step::TensorId id) const;

 private:
  View resolve(const step::Operand& operand) const;
  template <class Wanted>
  void run_where(int begin, int end, const Wanted& wanted) const;
  Queue queue_of(step::Stream stream) const { return queues_[static_cast<size_t>(stream)]; }
  void meet(bool before) const;

  const step::Program& program_;
  const step::MemoryPlan& plan_;
  const Backend& backend_;
  const Memory memory_;
  std::vector<Launch> launches_;
  std::array<Queue, step::stream_count> queues_;
  bool several_ = false;       // streams
  std::vector<Event> events_;  // per op that another waits for; empty for the others
  std::array<Event, step::stream_count> meeting_;
};

}  // namespace plimsoll::runtime
