// The random Hadamard transform of NVFP4's weight gradient: 16 values, signs fixed once and for
// all.
//
//   y[j] = sum_i x[i] * sign[i] * (-1)^popcount(i & j) / 4
//
// It is orthogonal: transforming both operands along the contraction leaves their product
// unchanged, provided that both use the same signs. Signs and order of summation as in
// TransformerEngine 2.20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

// Bit i is set where sign[i] is negative.
inline constexpr uint32_t hadamard_signs = 0xd7e8;

// Sums in float, i ascending, `out` holding the sums so far: it may not overlap `x`. Products are
// exact as long as x / 4 is a float, which holds for bf16 values.
PLIMSOLL_HD inline void hadamard16_unrounded(std::span<const float, 16> x, float* out,
                                             uint32_t signs = hadamard_signs) {
  constexpr uint32_t odd = 0x6996;  // bit n: whether popcount(n) is odd
  for (uint32_t j = 0; j < 16; ++j) out[j] = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    const float quarter = x[i] * (signs >> i & 1u ? -0.25f : 0.25f);
    for (uint32_t j = 0; j < 16; ++j) {
      out[j] = add_rn(out[j], odd >> (i & j) & 1u ? -quarter : quarter);
    }
  }
}

// As the recipe stores it: each result rounded to bf16.
PLIMSOLL_HD inline void hadamard16(std::span<const float, 16> x, float* out) {
  hadamard16_unrounded(x, out);
  for (size_t j = 0; j < 16; ++j) out[j] = static_cast<float>(bf16(out[j]));
}

}  // namespace plimsoll
