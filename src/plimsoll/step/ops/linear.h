// Matrix products of linear layers and the gradients of their biases.
//
// A linear layer is y[T,N] = x[T,K] * weight[N,K]^T (+ bias[N]); its two gradients are products
// too:
//   input gradient   dx[T,K] = dy[T,N] * weight[N,K]
//   weight gradient  dweight[N,K] += dy[T,N]^T * x[T,K]
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// Which of the three products of a linear layer this is; number-format recipes treat them apart.
enum class Product : uint8_t { forward, input_gradient, weight_gradient };

// c = a' * b' (+ bias) (+ c when accumulate), accumulated in f32, where
//   forward:         a (T,K), b (N,K)  ->  c (T,N) = a * b^T
//   input_gradient:  a (T,N), b (N,K)  ->  c (T,K) = a * b
//   weight_gradient: a (T,N), b (T,K)  ->  c (N,K) = a^T * b
// inputs: a, b, [bias (1,columns of c) f32, forward only], [c when accumulate]   outputs: c
struct MatMul {
  static constexpr const char* kind_name = "mat_mul";
  Product product = Product::forward;
  bool has_bias = false;
  bool accumulate = false;
  Format output = Format::f32;
};
OutputTypes infer(const MatMul&, InputTypes in);
void differentiate(const MatMul&, const Op&, GradientBuilder&);
Flops flops(const MatMul&, InputTypes in);

// dbias[n] += sum_t dy[t,n]
// inputs: dy (T,N), dbias (1,N) f32   outputs: dbias in place
struct BiasGradient : NotDifferentiated {
  static constexpr const char* kind_name = "bias_gradient";
};
OutputTypes infer(const BiasGradient&, InputTypes in);
Flops flops(const BiasGradient&, InputTypes in);

}  // namespace plimsoll::step
