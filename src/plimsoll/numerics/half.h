// IEEE binary16, the "fp16" of loss-scaled training: 5 bits of exponent, 10 of mantissa, with
// subnormals, Inf and NaN.
//
// Integer arithmetic only. From float to nearest, ties to even: 65520 and more become Inf; NaN
// becomes 0x7fff with the sign dropped, as CUDA's cvt.rn.f16.f32 does.
#pragma once

#include <bit>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"
#include "plimsoll/numerics/minifloat.h"

namespace plimsoll {

inline constexpr uint16_t f16_inf = 0x7c00;
inline constexpr float f16_max = 65504;

PLIMSOLL_HD constexpr uint16_t encode_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  const uint32_t code = round_magnitude(magnitude, 10, 15);
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | (code < f16_inf ? code : f16_inf));
}

// Exact; NaN becomes the quiet NaN of its sign.
PLIMSOLL_HD constexpr float decode_f16(uint16_t code) {
  const uint32_t magnitude = code & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000u) << 16;
  if (magnitude >= f16_inf) {
    return std::bit_cast<float>(sign | (magnitude == f16_inf ? 0x7f800000u : 0x7fc00000u));
  }
  if (magnitude >> 10 == 0) {  // subnormal: a whole number of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

}  // namespace plimsoll
