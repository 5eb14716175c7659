// E8M0, the scale of an MX block (OCP Microscaling Formats 1.0): code c means 2^(c - 127), 255
// means NaN. There is no zero and no sign; encoding drops the sign.
//
// 2^-127 (code 0, and the reciprocal of code 254) is a subnormal float.
#pragma once

#include <bit>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

inline constexpr uint8_t e8m0_nan = 255;

// The next power of two at or above |x|, without an upper end: 255 past 2^127. `bits`: of |x|,
// finite.
PLIMSOLL_HD constexpr uint32_t e8m0_ceiling(uint32_t bits) {
  const uint32_t exponent = bits >> 23, mantissa = bits & 0x7fffffu;
  // Subnormals up to 2^-127 have code 0, the larger ones code 1.
  const bool up = exponent == 0 ? mantissa > 0x400000u : mantissa != 0;
  return exponent + (up ? 1 : 0);
}

// cvt.rp.satfinite.ue8m0: up, past 2^127 to 254, Inf to 254, 0 to code 0.
PLIMSOLL_HD constexpr uint8_t e8m0_round_up(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  if (bits > 0x7f800000u) return e8m0_nan;
  const uint32_t code = e8m0_ceiling(bits);
  return static_cast<uint8_t>(code < 254 ? code : 254);
}

// Without satfinite: past 2^127, and Inf, to NaN.
PLIMSOLL_HD constexpr uint8_t e8m0_round_up_overflowing(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  if (bits >= 0x7f800000u) return e8m0_nan;
  return static_cast<uint8_t>(e8m0_ceiling(bits));
}

// Toward zero, Inf to 254.
PLIMSOLL_HD constexpr uint8_t e8m0_truncate(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  if (bits > 0x7f800000u) return e8m0_nan;
  const uint32_t code = bits >> 23;
  return static_cast<uint8_t>(code < 254 ? code : 254);
}

// Toward zero, Inf to NaN.
PLIMSOLL_HD constexpr uint8_t e8m0_truncate_overflowing(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  return static_cast<uint8_t>(bits > 0x7f800000u ? 255u : bits >> 23);
}

// OCP Microscaling Formats 1.0, section 6.3: floor(log2(amax)) - emax, at least -127; Inf and NaN
// to NaN. `amax` >= 0; `emax` >= 0 is the exponent of the elements' largest number.
PLIMSOLL_HD constexpr uint8_t e8m0_floor(float amax, int emax) {
  const uint32_t bits = std::bit_cast<uint32_t>(amax) & 0x7fffffffu;
  if (bits >= 0x7f800000u) return e8m0_nan;
  const int code = static_cast<int>(bits >> 23) - emax;  // subnormals end at 0 in any case
  return static_cast<uint8_t>(code > 0 ? code : 0);
}

// 2^(code - 127).
PLIMSOLL_HD constexpr float e8m0_value(uint8_t code) {
  if (code == e8m0_nan) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(code == 0 ? 0x00400000u : uint32_t{code} << 23);
}

// 2^(127 - code).
PLIMSOLL_HD constexpr float e8m0_reciprocal(uint8_t code) {
  if (code == e8m0_nan) return std::bit_cast<float>(0x7fc00000u);
  return e8m0_value(static_cast<uint8_t>(254 - code));
}

}  // namespace plimsoll
