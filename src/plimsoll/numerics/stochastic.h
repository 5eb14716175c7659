// Stochastic rounding to E2M1 with random bits that belong to an element, not to a moment: the same
// bits on every back end, after a resume, and when an activation is computed again.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"
#include "plimsoll/numerics/minifloat.h"
#include "plimsoll/numerics/random.h"

namespace plimsoll {

// What cvt.rs.satfinite.e2m1x4.f32 computes: adds random_byte / 256 of the step between neighbours
// and cuts off. The mean over all bytes is at most 1/256 of a step nearer to zero than x, for
// |x| <= 6; larger magnitudes become 6, and NaN becomes +6.
PLIMSOLL_HD inline uint8_t encode_e2m1_stochastic(float x, uint8_t random_byte) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return layout(e2m1).max_code;
  // The step above |x|: 0.5 below 2, 1 below 4, 2 from there on.
  const uint32_t exponent = magnitude >> 23;
  const uint32_t step_exponent = (exponent < 127 ? 127 : exponent < 129 ? exponent : 129) - 1;
  const float step = std::bit_cast<float>(step_exponent << 23);
  // The product has eight bits, so only the sum rounds.
  const float raised = add_rn(random_byte * (1.0f / 256) * step, std::bit_cast<float>(magnitude));
  // Exponent and first bit of the mantissa: 252 stands for 0.5, 254 for 1.
  const uint32_t cut = std::bit_cast<uint32_t>(raised) >> 22;
  const uint32_t code = cut >= 254 ? cut - 252 : cut >= 252 ? 1 : 0;
  return static_cast<uint8_t>((bits >> 28 & 8u) | (code < 7 ? code : 7u));
}

// Everything that a random byte depends on, besides the element's index in its tensor.
struct StreamKey {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t micro_step = 0;
  uint32_t layer = 0;
  uint32_t tensor = 0;

  bool operator==(const StreamKey&) const = default;
};

// A StreamKey made ready for drawing.
//
//   words = philox(counter {step, micro_step, layer, tensor}, key {seed low, seed high})
//   bytes = philox(counter {group low, group high, words[0], words[1]}, key {words[2], words[3]})
//
// where group = element / 16. Philox permutes its counters, so two streams of one seed differ in
// `words` and never draw from the same counter under the same key.
struct RandomStream {
  Philox words;
};

PLIMSOLL_HD constexpr RandomStream random_stream(const StreamKey& key) {
  return {philox({key.step, key.micro_step, key.layer, key.tensor},
                 {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)})};
}

// Bytes of elements 16 * group to 16 * group + 15: word by word, the low byte of a word first.
using PhiloxBytes = std::array<uint8_t, 16>;

PLIMSOLL_HD constexpr PhiloxBytes random_bytes16(const RandomStream& stream, uint64_t group) {
  const Philox words = philox({static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                               stream.words[0], stream.words[1]},
                              {stream.words[2], stream.words[3]});
  PhiloxBytes bytes{};
  for (unsigned i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  return bytes;
}

PLIMSOLL_HD constexpr PhiloxBytes random_bytes16(const StreamKey& key, uint64_t group) {
  return random_bytes16(random_stream(key), group);
}

PLIMSOLL_HD constexpr uint8_t random_byte(const StreamKey& key, uint64_t element) {
  return random_bytes16(key, element / 16)[element % 16];
}

}  // namespace plimsoll
