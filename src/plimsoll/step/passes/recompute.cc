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
    check_without_waits(source_, "recompute");
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
    run_writers_before(id, source_.ops.size());
    return copies_.at(id);
  }

  // Runs again those ops before `end` that write `id` and have not run again yet: a tensor may be
  // made by one op and changed in place by the next, and the first may have run for another of its
  // outputs.
  void run_writers_before(TensorId id, size_t end) {
    const auto& writers = writers_[static_cast<size_t>(id)];
    check(!writers.empty(),
          fmt::format("{} has no forward op to run again", source_.tensor(id).name));
    size_t& done = writers_done_[id];
    while (done < writers.size() && writers[done] < end) emit_again(writers[done]);
  }

  void emit_again(size_t index) {
    Op op = without_kept_sum(source_.ops[index]);
    op.phase = Phase::recompute;
    const auto writes = [&](TensorId id) {
      return std::any_of(op.outputs.begin(), op.outputs.end(),
                         [&](const Operand& output) { return output.tensor == id; });
    };
    std::vector<TensorId> inputs;
    for (const Operand& input : op.inputs) {
      if (writes(input.tensor) && !available(input.tensor)) {  // in place
        run_writers_before(input.tensor, index);
        inputs.push_back(copies_.at(input.tensor));
      } else {
        inputs.push_back(recomputed(input.tensor));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) op.inputs[i].tensor = inputs[i];
    for (Operand& output : op.outputs) {
      const TensorId id = output.tensor;
      // What persists is written in place again: counters and states of quantisers.
      if (source_.tensor(id).persistent) continue;
      output.tensor = copy_of(id);
      if (available(id)) continue;
      const auto& writers = writers_[static_cast<size_t>(id)];
      size_t& done = writers_done_[id];
      check(done < writers.size() && writers[done] == index,
            fmt::format("{} is recomputed by op {} out of turn", source_.tensor(id).name, index));
      ++done;
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
  std::unordered_map<TensorId, size_t> writers_done_;  // of the copy, in the order of writers_
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
