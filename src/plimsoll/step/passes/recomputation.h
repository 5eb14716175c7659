// What a set of dropped activations makes run again, without building the program: the one rule
// that the pass (recompute.h) carries out and that the planner prices many times over.
#pragma once

#include <vector>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

// The ops of the rewritten program, in order, and the tensors they use.
struct Recomputation {
  struct Entry {
    int op = 0;                // of the source program
    bool again = false;        // a forward op run again; else the op itself
    bool without_sum = false;  // a fused addition and norm whose sum is kept: the norm alone
    int operands = 0;          // where its inputs, then its outputs begin in `operands`
    int inputs = 0, outputs = 0;
  };
  // New tensors: copies of tensors of the source, numbered behind its own.
  struct Copy {
    TensorId of = -1;
    bool unread = false;  // of a kept tensor that an op writes along with what is wanted
  };
  std::vector<Entry> entries;
  std::vector<TensorId> operands;
  std::vector<Copy> copies;
};

// One program's ops and forward writers in flat arrays, so that a set of dropped tensors is worked
// out in a time in proportion to the ops. The program must outlive it.
class RecomputationRule {
 public:
  explicit RecomputationRule(const Program&);

  // `dropped`: per tensor, whether it is a saved activation that is dropped. The result is valid
  // until the next call.
  const Recomputation& apply(const std::vector<bool>& dropped);

 private:
  struct FlatOp {
    int operands = 0, inputs = 0, outputs = 0;
    bool reads_kept = false;  // backward and recompute ops, whose inputs may be copies
    bool adds_and_norms = false;
  };
  bool available(TensorId id) const;
  bool kept_sum(const FlatOp&) const;
  int pending_writer(TensorId id, int end) const;
  void run_again(TensorId id);
  void emit_again(int op);
  TensorId copy_of(TensorId id);

  std::vector<FlatOp> ops_;
  std::vector<TensorId> operands_;
  std::vector<bool> persistent_, saved_;
  std::vector<int> writers_;        // forward ops, tensor by tensor
  std::vector<int> writers_begin_;  // per tensor, into writers_; one more at the end
  int tensors_ = 0;

  const std::vector<bool>* dropped_ = nullptr;
  std::vector<TensorId> copies_;   // per tensor; -1: not made yet
  std::vector<int> writers_done_;  // of the copy, in the order of writers_
  std::vector<std::pair<int, int>> stack_;  // ops to run again, and the input each waits for
  Recomputation result_;
};

// The op of an entry with operands of the source program: its kind changed where the sum is kept.
Op op_of(const Program& source, const Recomputation::Entry&);

}  // namespace plimsoll::step
