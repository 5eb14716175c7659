// Quantising a matrix for the products of a linear layer, and the products of quantised matrices.
//
// The precision pass inserts both (passes/precision.h). All three products of a linear layer become
// c = a * b^T with the sum along the columns of both, so a matrix is quantised along its columns
// ("rows": row by row) for one product and, transposed, for another ("columns").
#pragma once

#include "plimsoll/numerics/delayed_scaling.h"
#include "plimsoll/numerics/quantization.h"
#include "plimsoll/step/ops/linear.h"

namespace plimsoll::step {

// x, and x transposed, quantised in one pass from the same bf16 values.
//
// inputs:  x (R, C) bf16, control (1, 8) i32, statistics (1, 8) f32,
//          [state (1, history + 1) f32 for Scaling::delayed: history, then the scale, 0 while there
//          is none]
// outputs: [of x: codes, scales?, tensor_scale?] [of x^T: codes, scales?, tensor_scale?],
//          statistics in place, [state in place]
struct Quantize : NotDifferentiated {
  static constexpr const char* kind_name = "quantize";
  bool has_rows = true, has_columns = false;
  Quantization rows, columns;
  bool loss_scaled = false;        // Scaling::loss: by the control's loss scale, else by 1
  uint32_t layer = 0, tensor = 0;  // of the random bits of stochastic rounding
};
OutputTypes infer(const Quantize&, InputTypes in);
Flops flops(const Quantize&, InputTypes in);

// c = a * b^T (+ bias) (+ c when accumulate), accumulated in f32.
// inputs: a's codes (M, K), scales?, tensor_scale?, b's codes (N, K), scales?, tensor_scale?,
//         [bias (1, N) f32], [c when accumulate]   outputs: c (M, N)
struct QuantizedMatMul : NotDifferentiated {
  static constexpr const char* kind_name = "quantized_mat_mul";
  Quantization a, b;
  Product product = Product::forward;  // of the layer: for reports
  bool has_bias = false;
  bool accumulate = false;
  Format output = Format::bf16;
};
OutputTypes infer(const QuantizedMatMul&, InputTypes in);
Flops flops(const QuantizedMatMul&, InputTypes in);

// How many tensors an operand is.
constexpr size_t tensor_count(const Quantization& q) {
  return 1 + has_block_scales(q.scaling) + has_tensor_scale(q.scaling);
}

// Types of an operand's tensors for a matrix of (rows, columns).
std::vector<TensorType> quantized_types(const Quantization&, const Shape& shape);

// Delayed scaling: rolls the history and chooses the scale of the next step.
// inputs: state (1, history + 1) f32   outputs: state in place
struct UpdateScaling : NotDifferentiated {
  static constexpr const char* kind_name = "update_scaling";
  AmaxAlgorithm algorithm = AmaxAlgorithm::max;
  float format_max = 448;
  int margin = 0;
};
OutputTypes infer(const UpdateScaling&, InputTypes in);
Flops flops(const UpdateScaling&, InputTypes in);

}  // namespace plimsoll::step
