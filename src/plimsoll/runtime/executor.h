// Runs a program at the addresses of its memory plan.
#pragma once

#include <vector>

#include "plimsoll/runtime/arena.h"
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
  // Resolves every operand to its address and prepares every op. `program` must have its
  // workspaces (with_workspaces) and `arena` at least the plan's size; both must outlive this.
  Executor(const step::Program& program, const step::MemoryPlan& plan, const Backend& backend,
           const Arena& arena);

  // The bytes of a tensor in the arena. Of a tensor that is not persistent, they are valid only
  // between the ops of its lifetime.
  View view(step::TensorId id) const { return resolve({id}); }

  // Runs the ops of one phase, in order.
  void run(step::Phase phase) const;

  // Forward, recomputation and backward ops, in program order: one micro-step.
  void run_micro_step(MicroStep now = {}) const;

  // Ops [begin, end).
  void run(int begin, int end) const;

 private:
  View resolve(const step::Operand& operand) const;

  const step::Program& program_;
  const step::MemoryPlan& plan_;
  const Arena& arena_;
  std::vector<Launch> launches_;
};

}  // namespace plimsoll::runtime
