// bfloat16: the upper half of an IEEE binary32. Conversion from float rounds to nearest, ties to
// even; NaN becomes the quiet NaN 0x7fff with the sign dropped, as CUDA's cvt.rn.bf16.f32 does.
#pragma once

#include <bit>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  PLIMSOLL_HD constexpr explicit bf16(float value) : bits(round(value)) {}
  PLIMSOLL_HD constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

 private:
  PLIMSOLL_HD static constexpr uint16_t round(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};
static_assert(sizeof(bf16) == 2);

}  // namespace plimsoll
