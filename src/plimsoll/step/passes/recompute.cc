#include "plimsoll/step/passes/recompute.h"

#include "plimsoll/step/passes/recomputation.h"

namespace plimsoll::step {

std::vector<TensorId> saved_tensors(const Program& program) {
  std::vector<TensorId> saved;
  std::vector<bool> seen(program.tensors.size());
  for (const Op& op : program.ops) {
    if (op.phase != Phase::forward) continue;
    for (const Operand& output : op.outputs) {
      const auto id = static_cast<size_t>(output.tensor);
      if (seen[id] || program.tensors[id].role != Role::saved) continue;
      seen[id] = true;
      saved.push_back(output.tensor);
    }
  }
  return saved;
}

Program recompute(Program program, const TensorSet& dropped) {
  std::vector<bool> is_dropped(program.tensors.size());
  for (const TensorId id : dropped) is_dropped[static_cast<size_t>(id)] = true;
  RecomputationRule rule(program);
  const Recomputation& recomputation = rule.apply(is_dropped);

  Program result;
  result.tensors = program.tensors;
  int unread = 1;
  for (const Recomputation::Copy& copy : recomputation.copies) {
    Tensor tensor = program.tensor(copy.of);
    tensor.name += fmt::format(".recomputed{}", copy.unread ? unread++ : 0);
    tensor.role = Role::activation;
    add_tensor(result, std::move(tensor));
  }
  result.ops.reserve(recomputation.entries.size());
  for (const Recomputation::Entry& entry : recomputation.entries) {
    Op op = op_of(program, entry);
    const TensorId* tensor = recomputation.operands.data() + entry.operands;
    for (Operand& input : op.inputs) input.tensor = *tensor++;
    for (Operand& output : op.outputs) output.tensor = *tensor++;
    if (entry.again) {
      append(result, std::move(op));
    } else {
      result.ops.push_back(std::move(op));
    }
  }
  for (const TensorId id : dropped) result.tensor(id).role = Role::activation;
  return result;
}

}  // namespace plimsoll::step
