// Reverse-mode differentiation of a program: one backward rule an op kind, no second path.
//
// `differentiate_range` walks forward ops from last to first and lets each append the ops that
// carry its outputs' gradients to its inputs. A gradient is a tensor of the program like any other.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

class GradientBuilder {
 public:
  // `weight_gradients` maps a weight to the persistent tensor its gradient accumulates in.
  GradientBuilder(Program& program, std::unordered_map<TensorId, TensorId> weight_gradients)
      : program_(program), weight_gradients_(std::move(weight_gradients)) {}

  const Program& program() const { return program_; }

  // The gradient that has arrived at an activation so far.
  std::optional<TensorId> gradient(TensorId activation) const;

  // Declares `gradient` to be that of `activation`. It may be a tensor that later ops add to.
  void set_gradient(TensorId activation, TensorId gradient);

  // As set_gradient, for a second activation whose gradient has the same value at this moment (the
  // branch of a residual addition). It is read by the ops that come next and never added to.
  void lend_gradient(TensorId activation, TensorId gradient);

  // A new tensor for the gradient of `activation`, of its type unless `type` is given.
  TensorId new_gradient(TensorId activation);
  TensorId new_gradient(TensorId activation, TensorType type);

  // Where the gradient of a weight accumulates.
  TensorId weight_gradient(TensorId weight) const;

  // Appends a backward op to the layer of the op being differentiated.
  void emit(OpKind kind, std::vector<Operand> inputs, std::vector<Operand> outputs);

  // Whether a new contribution to this activation's gradient is added to one that is there.
  bool accumulates(TensorId activation) const;

 private:
  friend void differentiate_range(GradientBuilder&, int begin, int end);

  Program& program_;
  std::unordered_map<TensorId, TensorId> weight_gradients_;
  std::unordered_map<TensorId, TensorId> gradients_;
  std::unordered_set<TensorId> lent_;
  int layer_ = -1;
};

// Differentiates the ops [begin, end) of the program, from last to first.
void differentiate_range(GradientBuilder&, int begin, int end);

}  // namespace plimsoll::step
