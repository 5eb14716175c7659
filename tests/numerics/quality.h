// How well a quantised tensor stands for the original. Host only.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace plimsoll {

// 10 log10(sum original^2 / sum (original - quantized)^2), sums in double; infinite without error.
// Both spans have the same length.
inline double signal_to_noise_db(std::span<const float> original,
                                 std::span<const float> quantized) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < original.size(); ++i) {
    const double difference = static_cast<double>(original[i]) - quantized[i];
    signal += static_cast<double>(original[i]) * original[i];
    noise += difference * difference;
  }
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

}  // namespace plimsoll
