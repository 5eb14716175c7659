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
//   static constexpr const char* kind_name, or std::string_view kind_name(const Kind&)
//       The name in listings and in configuration ("rms_norm").
//
// An output that is written over an input is given as the same operand in both lists of the op;
// `OutputType::in_place_of` of what `infer` returns says which input that is. The bytes an op reads
// and writes follow from its operands.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
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

// Kinds that stand between the two products of an FFN: row by row, y = f(x, weights), with the
// inner activation x as input 0 and the output as output 0; the backward reads x, has dy as input 0
// and dx as output 0. passes/chunk_ffn.h finds FFNs by them, and the model builder takes no other
// kind.
struct FfnActivation {};
template <class Kind>
concept IsFfnActivation = std::is_base_of_v<FfnActivation, Kind>;

template <class Kind>
requires requires { Kind::kind_name; }
constexpr std::string_view kind_name(const Kind&) { return Kind::kind_name; }

}  // namespace plimsoll::step
