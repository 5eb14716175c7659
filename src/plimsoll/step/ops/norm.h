// Normalisation over the hidden dimension, alone or fused with the residual addition before it.
//
// RMSNorm:   y = x * rstd * weight,               rstd = 1 / sqrt(mean(x^2) + eps)
//            Zhang & Sennrich 2019, "Root Mean Square Layer Normalization".
// LayerNorm: y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(var(x) + eps), biased variance
//            Ba, Kiros & Hinton 2016, "Layer Normalization".
//
// x, branch, sum, y (T,h) in the activation format; weight, bias (1,h) f32; statistics f32.
// The fused kinds first form sum = x + branch (rounded to its format) and normalise the rounded
// sum.
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: x, weight   outputs: y, rstd (T,1)
struct RmsNorm {
  static constexpr const char* kind_name = "rms_norm";
  float eps = 1e-5f;
};
OutputTypes infer(const RmsNorm&, InputTypes in);
void differentiate(const RmsNorm&, const Op&, GradientBuilder&);
Flops flops(const RmsNorm&, InputTypes in);

// inputs: x, branch, weight   outputs: sum, y, rstd (T,1)
struct AddRmsNorm {
  static constexpr const char* kind_name = "add_rms_norm";
  float eps = 1e-5f;
};
OutputTypes infer(const AddRmsNorm&, InputTypes in);
void differentiate(const AddRmsNorm&, const Op&, GradientBuilder&);
Flops flops(const AddRmsNorm&, InputTypes in);

// inputs: x, weight, bias   outputs: y, statistics (T,2) = mean, rstd
struct LayerNorm {
  static constexpr const char* kind_name = "layer_norm";
  float eps = 1e-5f;
};
OutputTypes infer(const LayerNorm&, InputTypes in);
void differentiate(const LayerNorm&, const Op&, GradientBuilder&);
Flops flops(const LayerNorm&, InputTypes in);

// inputs: x, branch, weight, bias   outputs: sum, y, statistics (T,2)
struct AddLayerNorm {
  static constexpr const char* kind_name = "add_layer_norm";
  float eps = 1e-5f;
};
OutputTypes infer(const AddLayerNorm&, InputTypes in);
void differentiate(const AddLayerNorm&, const Op&, GradientBuilder&);
Flops flops(const AddLayerNorm&, InputTypes in);

// inputs: dy, x, weight, rstd, dweight f32, [dx when accumulate]
// outputs: dx (dx += when accumulate, in place), dweight += in place
struct RmsNormBackward : NotDifferentiated {
  static constexpr const char* kind_name = "rms_norm_backward";
  bool accumulate = false;
};
OutputTypes infer(const RmsNormBackward&, InputTypes in);
Flops flops(const RmsNormBackward&, InputTypes in);

// inputs: dy, x, weight, statistics, dweight f32, dbias f32, [dx when accumulate]
// outputs: dx (dx += when accumulate, in place), dweight +=, dbias += in place
struct LayerNormBackward : NotDifferentiated {
  static constexpr const char* kind_name = "layer_norm_backward";
  bool accumulate = false;
};
OutputTypes infer(const LayerNormBackward&, InputTypes in);
Flops flops(const LayerNormBackward&, InputTypes in);

}  // namespace plimsoll::step
