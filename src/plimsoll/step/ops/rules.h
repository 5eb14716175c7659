// What every op kind answers about itself, and the vocabulary of the answers.
//
// An op kind is a plain struct; its rules are overloads found next to it in ops/*.h:
//
//   OutputTypes infer(const Kind&, InputTypes inputs);
//       Types of the outputs. Raises Exit::bug when the inputs do not fit together.
//   void differentiate(const Kind&, const Op& op, GradientBuilder&);
//       Appends the ops that carry the gradient of op's outputs to its inputs.
//       Kinds that only occur in a backward or in the optimizer derive from NotDifferentiated.
//   Flops flops(const Kind&, InputTypes inputs);
//       Floating-point operations, a multiply-add counted as two.
//   static constexpr const char* kind_name
//       The name in listings and in configuration ("rms_norm").
//
// An output that is written over an input is given as the same operand in both lists of the op;
// `in_place` names those pairs. The bytes an op reads and writes follow from its operands.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/step/tensor.h"

namespace plimsoll::step {

struct Op;
class GradientBuilder;

using InputTypes = std::span<const TensorType>;

struct OutputType {
  TensorType type;
  int in_place_of = -1;  // index of the input that this output overwrites; -1: its own tensor
};
using OutputTypes = std::vector<OutputType>;

// Kinds whose gradient is never asked for.
struct NotDifferentiated {};

}  // namespace plimsoll::step
