// Delayed scaling: a tensor is quantised with a scale that earlier steps' magnitudes chose
// (TransformerEngine 2.20's DelayedScaling). The scale never depends on the tensor at hand.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "plimsoll/numerics/host_device.h"
#include "plimsoll/numerics/scaling.h"

namespace plimsoll {

enum class AmaxAlgorithm : uint8_t { max, most_recent };
constexpr std::string_view name(AmaxAlgorithm algorithm) {
  switch (algorithm) {
    case AmaxAlgorithm::max:
      return "max";
    case AmaxAlgorithm::most_recent:
      return "most_recent";
  }
  return "";
}

// State of one tensor, which belongs to the caller and goes into checkpoints. The history, of one
// value or more, starts at 0: history[0] collects the current step's magnitude, the rest are those
// of earlier steps, oldest first. What the scale is before the first update is the caller's choice
// (step/ops/quantize.h: 0, for none yet).
struct DelayedScaling {
  std::span<float> history;
  float& scale;

  // Called whenever the tensor is quantised (with the scale as it is). NaN counts as Inf, which
  // keeps the scale unchanged for as long as it is in the history, where a maximum would lose it.
  PLIMSOLL_HD void observe(float amax) {
    if (amax != amax) amax = INFINITY;
    if (amax > history[0]) history[0] = amax;
  }

  // Once a step, after the magnitudes of all ranks were joined. A module that did not run (0 seen)
  // keeps its history and its scale.
  PLIMSOLL_HD void update(AmaxAlgorithm algorithm, float format_max, int margin = 0) {
    const float last = history[0];
    if (last == 0) return;
    float largest = last;
    for (size_t i = 1; i < history.size(); ++i) {
      if (algorithm == AmaxAlgorithm::max && history[i] > largest) largest = history[i];
      history[i - 1] = history[i];
    }
    history.back() = last;
    history[0] = 0;
    if (largest > f32_max) return;
    const float quotient = divide_rn(std::ldexp(format_max, -margin), largest);
    scale = quotient > f32_max ? f32_max : quotient;
  }
};

}  // namespace plimsoll
