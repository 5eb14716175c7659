#include "plimsoll/step/passes/recompute.h"

#include <algorithm>
#include <unordered_map>

namespace plimsoll::step {

namespace {

std::vector<std::vector<size_t>> forward_writers(const Program& program) {
  std::vector<std::vector<size_t>> writers(program.tensors.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].phase != Phase::forward) continue;
    for (const Operand& output : program.ops[i].outputs) {
      writers[static_cast<size_t>(output.tensor)].push_back(i);
    }
  }
  return writers;
}

// Rewrites the backward of one program.
class Recomputation {
 public:
  Recomputation(Program program, const TensorSet& dropped)
      : source_(std::move(program)), dropped_(dropped), writers_(forward_writers(source_)) {
    result_.tensors = source_.tensors;
  }

  Program run() {
    for (const Op& op : source_.ops) {
      Op copy = op;
      if (op.phase == Phase::backward || op.phase == Phase::recompute) {
        for (Operand& input : copy.inputs) {
          if (dropped_.contains(input.tensor)) input.tensor = recomputed(input.tensor);
        }
      }
      result_.ops.push_back(std::move(copy));
    }
    for (const TensorId id : dropped_) result_.tensor(id).role = Role::activation;
    return std::move(result_);
  }

 private:
  bool available(TensorId id) const {
    const Tensor& tensor = source_.tensor(id);
    return tensor.persistent || (tensor.role == Role::saved && !dropped_.contains(id));
  }

  // The tensor that holds the value of `id` in the backward, computed here when it is the first
  // time it is asked for.
  TensorId recomputed(TensorId id) {
    if (available(id)) return id;
    if (const auto found = copies_.find(id); found != copies_.end()) return found->second;
    const auto& writers = writers_[static_cast<size_t>(id)];
    check(!writers.empty(),
          fmt::format("{} has no forward op to run again", source_.tensor(id).name));
    for (const size_t writer : writers) emit_again(writer, id);
    return copies_.at(id);
  }

  void emit_again(size_t index, TensorId wanted) {
    Op op = without_kept_sum(source_.ops[index]);
    op.phase = Phase::recompute;
    for (Operand& input : op.inputs) {
      // In place: the op's earlier writers have just run.
      if (input.tensor == wanted) {
        input.tensor = copies_.at(wanted);
      } else {
        input.tensor = recomputed(input.tensor);
      }
    }
    for (Operand& output : op.outputs) {
      // What persists is written in place again: counters and states of quantisers.
      if (!source_.tensor(output.tensor).persistent) output.tensor = copy_of(output.tensor);
    }
    append(result_, std::move(op));
  }

  // The copy a recomputing op writes; what is kept is written to a tensor that nobody reads.
  TensorId copy_of(TensorId id) {
    const auto [entry, inserted] = (available(id) ? unread_ : copies_).try_emplace(id, -1);
    if (inserted || available(id)) {
      Tensor tensor = source_.tensor(id);
      tensor.name += fmt::format(".recomputed{}", available(id) ? unread_count_++ : 0);
      tensor.role = Role::activation;
      entry->second = add_tensor(result_, std::move(tensor));
    }
    return entry->second;
  }

  // A fused addition and norm whose sum is kept is the norm of the sum alone, to the bit: the
  // fused kernels normalise the rounded sum (ops/norm.h).
  Op without_kept_sum(const Op& op) const {
    const auto norm_of_sum = [&](OpKind kind) {
      Op norm = op;
      norm.kind = std::move(kind);
      norm.inputs.erase(norm.inputs.begin(), norm.inputs.begin() + 2);
      norm.inputs.insert(norm.inputs.begin(), op.outputs[0]);
      norm.outputs.erase(norm.outputs.begin());
      return norm;
    };
    if (op.outputs.empty() || !available(op.outputs[0].tensor)) return op;
    if (const auto* kind = std::get_if<AddRmsNorm>(&op.kind)) {
      return norm_of_sum(RmsNorm{.eps = kind->eps});
    }
    if (const auto* kind = std::get_if<AddLayerNorm>(&op.kind)) {
      return norm_of_sum(LayerNorm{.eps = kind->eps});
    }
    return op;
  }

  const Program source_;
  const TensorSet& dropped_;
  const std::vector<std::vector<size_t>> writers_;
  Program result_;
  std::unordered_map<TensorId, TensorId> copies_;
  std::unordered_map<TensorId, TensorId> unread_;
  int unread_count_ = 1;
};

}  // namespace

std::vector<TensorId> saved_tensors(const Program& program) {
  std::vector<TensorId> saved;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::forward) continue;
    for (const Operand& output : op.outputs) {
      if (program.tensor(output.tensor).role == Role::saved &&
          std::find(saved.begin(), saved.end(), output.tensor) == saved.end()) {
        saved.push_back(output.tensor);
      }
    }
  }
  return saved;
}

Program recompute(Program program, const TensorSet& dropped) {
  return Recomputation(std::move(program), dropped).run();
}

}  // namespace plimsoll::step
