// Random numbers by counter: the value depends on what it is for, never on how many were drawn.
//
// Philox4x32-10, Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

using Philox = std::array<uint32_t, 4>;

// The four words that belong to `counter` under `key`.
PLIMSOLL_HD constexpr Philox philox(Philox counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in (0, 1), never 0 or 1.
PLIMSOLL_HD constexpr double uniform(uint32_t word) { return (word + 0.5) * 0x1p-32; }

// Two independent standard normals from two words (Box & Muller 1958).
inline std::array<double, 2> normal_pair(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2 * std::log(uniform(a)));
  const double angle = 6.283185307179586 * uniform(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// FNV-1a, to key random numbers by a name.
constexpr uint64_t hash_name(const char* text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != 0; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return hash;
}

}  // namespace plimsoll
