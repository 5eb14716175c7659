// The activation functions between the two products of an FFN.
//
// SwiGLU: y = silu(gate) * up, silu(z) = z / (1 + exp(-z)).  Shazeer 2020, "GLU Variants".
// GELU (tanh form): g(u) = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3))), u = x + bias.
//                   Hendrycks & Gimpel 2016.
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: gate_up (T, 2f), gate in columns [0, f), up in [f, 2f)   outputs: y (T, f)
struct SwiGlu {
  static constexpr const char* kind_name = "swi_glu";
};
OutputTypes infer(const SwiGlu&, InputTypes in);
void differentiate(const SwiGlu&, const Op&, GradientBuilder&);
Flops flops(const SwiGlu&, InputTypes in);

// inputs: dy (T, f), gate_up (T, 2f)   outputs: dgate_up (T, 2f)
struct SwiGluBackward : NotDifferentiated {
  static constexpr const char* kind_name = "swi_glu_backward";
};
OutputTypes infer(const SwiGluBackward&, InputTypes in);
Flops flops(const SwiGluBackward&, InputTypes in);

// inputs: x (T, f), bias (1, f) f32   outputs: y (T, f) = gelu(x + bias)
struct BiasGelu {
  static constexpr const char* kind_name = "bias_gelu";
};
OutputTypes infer(const BiasGelu&, InputTypes in);
void differentiate(const BiasGelu&, const Op&, GradientBuilder&);
Flops flops(const BiasGelu&, InputTypes in);

// inputs: dy (T, f), x (T, f), bias (1, f) f32, dbias (1, f) f32
// outputs: dx over dy in place, dbias += in place (the sum over the unrounded dx)
struct BiasGeluBackward : NotDifferentiated {
  static constexpr const char* kind_name = "bias_gelu_backward";
};
OutputTypes infer(const BiasGeluBackward&, InputTypes in);
Flops flops(const BiasGeluBackward&, InputTypes in);

}  // namespace plimsoll::step
