// What a step decides from single numbers: its loss, and whether it changes the weights.
#pragma once

#include <span>

#include "plimsoll/numerics/quantization.h"
#include "plimsoll/runtime/view.h"
#include "plimsoll/step/ops/loss.h"

namespace plimsoll::cpu {

// losses (tokens) f32, targets (tokens) i32: adds to `total` (step/ops/loss.h).
void sum_losses(const View& losses, const View& targets, step::LossTotal& total);

// skip = 1 when a quantiser met Inf or NaN, else 0. `control` is null unless the loss scale is
// dynamic: then it is changed as StepGuard says (step/ops/optimizer.h).
void step_guard(std::span<const QuantizerStatistics> statistics, QuantizerControl* control,
                int64_t growth, int32_t& skip);

}  // namespace plimsoll::cpu
