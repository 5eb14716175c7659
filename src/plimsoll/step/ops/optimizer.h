// The optimizer step: global gradient norm, clipping, AdamW.
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// squares[slot] = sum of grad^2 (summed in double over fixed blocks, then rounded to f32)
// inputs: grad f32, squares (1, parameters) f32   outputs: squares in place
struct SquaredNorm : NotDifferentiated {
  static constexpr const char* kind_name = "squared_norm";
  int64_t slot = 0;
};
OutputTypes infer(const SquaredNorm&, InputTypes in);
Flops flops(const SquaredNorm&, InputTypes in);

// Whether this step may change the weights: not when a quantiser met Inf or NaN. With a dynamic
// loss scale (Micikevicius et al. 2018, "Mixed Precision Training") that halves the scale, to 1 at
// least, and `growth` steps without it double it.
// inputs: statistics (n,8) f32, [control (1,8) i32 when dynamic]
// outputs: skip (1,1) i32, 1 to leave the weights as they are, [control in place]
struct StepGuard : NotDifferentiated {
  static constexpr const char* kind_name = "step_guard";
  bool dynamic = false;
  int64_t growth = 2000;
};
OutputTypes infer(const StepGuard&, InputTypes in);
Flops flops(const StepGuard&, InputTypes in);

// norm = sqrt(sum of squares); factor = min(1, max_norm / norm), or 1 when max_norm is 0; apply is
// 0 when the step is skipped. inputs: squares, [skip (1,1) i32]   outputs: clip (1,3) f32 = norm,
// factor, apply
struct ClipFactor : NotDifferentiated {
  static constexpr const char* kind_name = "clip_factor";
  float max_norm = 0;
};
OutputTypes infer(const ClipFactor&, InputTypes in);
Flops flops(const ClipFactor&, InputTypes in);

// Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", in PyTorch's order:
//   g = grad * factor;  weight -= lr * decay * weight
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   weight -= lr * (m / c1) / (sqrt(v / c2) + eps),  c1 = 1 - beta1^step, c2 = 1 - beta2^step
// and grad = 0, ready for the next accumulation: all that is left when `apply` is 0.
// m and v are f32 or bf16; the step uses their values before they are rounded.
// inputs: weight f32, grad f32, m, v, settings (1,3) f32 = lr, c1, c2, clip (1,3) f32
// outputs: weight, grad, m, v in place, [rounded weight in `copy` format, when copy is not f32]
struct AdamW : NotDifferentiated {
  static constexpr const char* kind_name = "adam_w";
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0;
  Format copy = Format::f32;
};
OutputTypes infer(const AdamW&, InputTypes in);
Flops flops(const AdamW&, InputTypes in);

}  // namespace plimsoll::step
