// The activation functions between the two products of an FFN.
//
// Gated: y = f(gate) * up.  Shazeer 2020, "GLU Variants Improve Transformer".
//   SwiGLU: f = silu, silu(z) = z / (1 + exp(-z))
//   GeGLU:  f = g, below
// GELU (tanh form): g(u) = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3))), u = x (+ bias).
//                   Hendrycks & Gimpel 2016.
#pragma once

#include <array>

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// The function of the gate.
enum class Gate : uint8_t { silu, gelu };
inline constexpr std::array gates = {Gate::silu, Gate::gelu};

// inputs: gate_up (T, 2f), gate in columns [0, f), up in [f, 2f)   outputs: y (T, f)
struct Glu : FfnActivation {
  Gate gate = Gate::silu;
};
std::string_view kind_name(const Glu&);  // "swi_glu", "ge_glu"
OutputTypes infer(const Glu&, InputTypes in);
void differentiate(const Glu&, const Op&, GradientBuilder&);
Flops flops(const Glu&, InputTypes in);

// inputs: dy (T, f), gate_up (T, 2f)   outputs: dgate_up (T, 2f)
struct GluBackward : NotDifferentiated {
  Gate gate = Gate::silu;
};
std::string_view kind_name(const GluBackward&);  // "swi_glu_backward", ...
OutputTypes infer(const GluBackward&, InputTypes in);
Flops flops(const GluBackward&, InputTypes in);

// inputs: x (T, f), [bias (1, f) f32]   outputs: y (T, f) = gelu(x + bias)
struct Gelu : FfnActivation {
  bool has_bias = true;
};
std::string_view kind_name(const Gelu&);  // "bias_gelu", "gelu"
OutputTypes infer(const Gelu&, InputTypes in);
void differentiate(const Gelu&, const Op&, GradientBuilder&);
Flops flops(const Gelu&, InputTypes in);

// inputs: dy (T, f), x (T, f), [bias (1, f) f32, dbias (1, f) f32]
// outputs: dx over dy in place, [dbias += in place (the sum over the unrounded dx)]
struct GeluBackward : NotDifferentiated {
  bool has_bias = true;
};
std::string_view kind_name(const GeluBackward&);  // "bias_gelu_backward", "gelu_backward"
OutputTypes infer(const GeluBackward&, InputTypes in);
Flops flops(const GeluBackward&, InputTypes in);

}  // namespace plimsoll::step
