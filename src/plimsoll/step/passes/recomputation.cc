#include "plimsoll/step/passes/recomputation.h"

#include <algorithm>

namespace plimsoll::step {

namespace {

bool is_norm_of_a_sum(const Op& op) {
  return std::holds_alternative<AddRmsNorm>(op.kind) ||
         std::holds_alternative<AddLayerNorm>(op.kind);
}

}  // namespace

RecomputationRule::RecomputationRule(const Program& program)
    : tensors_(static_cast<int>(program.tensors.size())) {
  check_without_waits(program, "recompute");
  for (const Tensor& tensor : program.tensors) {
    persistent_.push_back(tensor.persistent);
    saved_.push_back(tensor.role == Role::saved);
  }
  writers_begin_.assign(program.tensors.size() + 1, 0);
  for (const Op& op : program.ops) {
    ops_.push_back({.operands = static_cast<int>(operands_.size()),
                    .inputs = static_cast<int>(op.inputs.size()),
                    .outputs = static_cast<int>(op.outputs.size()),
                    .reads_kept = op.phase == Phase::backward || op.phase == Phase::recompute,
                    .adds_and_norms = is_norm_of_a_sum(op)});
    for (const Operand& input : op.inputs) operands_.push_back(input.tensor);
    for (const Operand& output : op.outputs) operands_.push_back(output.tensor);
    if (op.phase != Phase::forward) continue;
    for (const Operand& output : op.outputs) ++writers_begin_[static_cast<size_t>(output.tensor) + 1];
  }
  for (size_t i = 1; i < writers_begin_.size(); ++i) writers_begin_[i] += writers_begin_[i - 1];
  writers_.resize(static_cast<size_t>(writers_begin_.back()));
  std::vector<int> next(writers_begin_.begin(), writers_begin_.end() - 1);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].phase != Phase::forward) continue;
    for (const Operand& output : program.ops[i].outputs) {
      writers_[static_cast<size_t>(next[static_cast<size_t>(output.tensor)]++)] =
          static_cast<int>(i);
    }
  }
}

bool RecomputationRule::available(TensorId id) const {
  const auto i = static_cast<size_t>(id);
  return persistent_[i] || (saved_[i] && !(*dropped_)[i]);
}

// A fused addition and norm whose sum is kept is the norm of the sum alone, to the bit: the fused
// kernels normalise the rounded sum (ops/norm.h).
bool RecomputationRule::kept_sum(const FlatOp& op) const {
  return op.adds_and_norms && available(operands_[static_cast<size_t>(op.operands + op.inputs)]);
}

// The first op before `end` that writes `id` and has not run again yet; -1: none.
int RecomputationRule::pending_writer(TensorId id, int end) const {
  const auto i = static_cast<size_t>(id);
  const int next = writers_begin_[i] + writers_done_[i];
  if (next == writers_begin_[i + 1]) return -1;
  const int writer = writers_[static_cast<size_t>(next)];
  return writer < end ? writer : -1;
}

// Runs again the ops that write `id`, and first what those read: a tensor may be made by one op and
// changed in place by the next, and the first may have run for another of its outputs.
void RecomputationRule::run_again(TensorId id) {
  const auto i = static_cast<size_t>(id);
  check(writers_begin_[i] < writers_begin_[i + 1], "a dropped tensor has no forward op to run again");
  for (int writer; (writer = pending_writer(id, static_cast<int>(ops_.size()))) >= 0;) {
    stack_.push_back({writer, 0});
    while (!stack_.empty()) {
      auto& [op, input] = stack_.back();
      const FlatOp& flat = ops_[static_cast<size_t>(op)];
      const TensorId* const inputs = operands_.data() + flat.operands;
      const TensorId* const outputs = inputs + flat.inputs;
      int needed = -1;
      if (!kept_sum(flat)) {
        for (; input < flat.inputs && needed < 0; input += needed < 0) {
          if (available(inputs[input])) continue;
          const bool in_place =
              std::find(outputs, outputs + flat.outputs, inputs[input]) != outputs + flat.outputs;
          needed = pending_writer(inputs[input], in_place ? op : static_cast<int>(ops_.size()));
        }
      } else {
        for (input = std::max(input, 2); input < flat.inputs && needed < 0; input += needed < 0) {
          if (!available(inputs[input])) {
            needed = pending_writer(inputs[input], static_cast<int>(ops_.size()));
          }
        }
      }
      if (needed >= 0) {
        stack_.push_back({needed, 0});
        continue;
      }
      const int done = op;
      stack_.pop_back();
      emit_again(done);
    }
  }
}

// The copy a recomputing op writes; what is kept is written to a tensor that nobody reads.
TensorId RecomputationRule::copy_of(TensorId id) {
  const bool unread = available(id);
  TensorId& copy = copies_[static_cast<size_t>(id)];
  if (!unread && copy >= 0) return copy;
  result_.copies.push_back({.of = id, .unread = unread});
  const auto made = static_cast<TensorId>(tensors_ + static_cast<int>(result_.copies.size()) - 1);
  if (!unread) copy = made;
  return made;
}

void RecomputationRule::emit_again(int op) {
  const FlatOp& flat = ops_[static_cast<size_t>(op)];
  const TensorId* const inputs = operands_.data() + flat.operands;
  const TensorId* const outputs = inputs + flat.inputs;
  Recomputation::Entry entry = {.op = op,
                                .again = true,
                                .without_sum = kept_sum(flat),
                                .operands = static_cast<int>(result_.operands.size())};
  const auto read = [&](TensorId id) {
    const TensorId source = available(id) ? id : copies_[static_cast<size_t>(id)];
    check(source >= 0, "an op is run again before what it reads");
    result_.operands.push_back(source);
    ++entry.inputs;
  };
  if (entry.without_sum) read(outputs[0]);
  for (int i = entry.without_sum ? 2 : 0; i < flat.inputs; ++i) read(inputs[i]);
  for (int i = entry.without_sum ? 1 : 0; i < flat.outputs; ++i) {
    const TensorId id = outputs[i];
    ++entry.outputs;
    // What persists is written in place again: counters and states of quantisers.
    if (persistent_[static_cast<size_t>(id)]) {
      result_.operands.push_back(id);
      continue;
    }
    result_.operands.push_back(copy_of(id));
    if (available(id)) continue;
    check(pending_writer(id, op + 1) == op, "an op is run again out of turn");
    ++writers_done_[static_cast<size_t>(id)];
  }
  result_.entries.push_back(entry);
}

const Recomputation& RecomputationRule::apply(const std::vector<bool>& dropped) {
  dropped_ = &dropped;
  copies_.assign(static_cast<size_t>(tensors_), -1);
  writers_done_.assign(static_cast<size_t>(tensors_), 0);
  result_.entries.clear();
  result_.operands.clear();
  result_.copies.clear();
  for (size_t i = 0; i < ops_.size(); ++i) {
    const FlatOp& op = ops_[i];
    const TensorId* const operands = operands_.data() + op.operands;
    const auto is_copy = [&](int j) {
      return op.reads_kept && j < op.inputs && dropped[static_cast<size_t>(operands[j])];
    };
    for (int j = 0; j < op.inputs; ++j) {
      if (is_copy(j)) run_again(operands[j]);
    }
    result_.entries.push_back({.op = static_cast<int>(i),
                               .operands = static_cast<int>(result_.operands.size()),
                               .inputs = op.inputs,
                               .outputs = op.outputs});
    for (int j = 0; j < op.inputs + op.outputs; ++j) {
      const TensorId id = operands[j];
      result_.operands.push_back(is_copy(j) ? copies_[static_cast<size_t>(id)] : id);
    }
  }
  return result_;
}

Op op_of(const Program& source, const Recomputation::Entry& entry) {
  Op op = source.ops[static_cast<size_t>(entry.op)];
  if (!entry.again) return op;
  op.phase = Phase::recompute;
  if (!entry.without_sum) return op;
  if (const auto* rms = std::get_if<AddRmsNorm>(&op.kind)) {
    const float eps = rms->eps;
    op.kind = RmsNorm{.eps = eps};
  } else if (const auto* layer = std::get_if<AddLayerNorm>(&op.kind)) {
    const float eps = layer->eps;
    op.kind = LayerNorm{.eps = eps};
  }
  op.inputs.erase(op.inputs.begin(), op.inputs.begin() + 2);
  op.inputs.insert(op.inputs.begin(), op.outputs[0]);
  op.outputs.erase(op.outputs.begin());
  return op;
}

}  // namespace plimsoll::step
