#include "plimsoll/runtime/executor.h"

#include "plimsoll/base/error.h"

namespace plimsoll::runtime {

using step::Op;
using step::Operand;
using step::Phase;

Executor::Executor(const step::Program& program, const step::MemoryPlan& plan,
                   const Backend& backend, const Arena& arena)
    : program_(program), plan_(plan), arena_(arena) {
  check(arena.size() >= plan.arena, "the arena is smaller than its plan");
  launches_.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    std::vector<View> inputs, outputs;
    for (const Operand& operand : op.inputs) inputs.push_back(resolve(operand));
    for (const Operand& operand : op.outputs) outputs.push_back(resolve(operand));
    std::span<std::byte> workspace;
    if (op.workspace >= 0) {
      const View scratch = resolve({op.workspace});
      workspace = {scratch.data, static_cast<size_t>(bytes(program.tensor(op.workspace)).count)};
    }
    launches_.push_back(backend.prepare(op, {inputs, outputs, workspace}));
  }
}

View Executor::resolve(const Operand& operand) const {
  const step::TensorType type = type_of(program_, operand);
  const int64_t offset = plan_.offsets[static_cast<size_t>(operand.tensor)].count;
  return {arena_.data() + offset + bytes_of(type.format, operand.offset), type.format,
          type.shape.rows, type.shape.columns};
}

void Executor::run(Phase phase) const {
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (program_.ops[i].phase == phase) launches_[i]();
  }
}

void Executor::run_micro_step(MicroStep now) const {
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Op& op = program_.ops[i];
    if (op.when == step::When::first && !now.first) continue;
    if (op.when == step::When::last && !now.last) continue;
    if (op.phase == Phase::forward || op.phase == Phase::recompute || op.phase == Phase::backward) {
      launches_[i]();
    }
  }
}

void Executor::run(int begin, int end) const {
  for (int i = begin; i < end; ++i) launches_[static_cast<size_t>(i)]();
}

}  // namespace plimsoll::runtime
