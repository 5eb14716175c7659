// A random order of 0..count-1 that is computed, not stored.
//
// A Feistel network keyed by (seed, epoch) permutes the numbers of an even count of bits; one that
// leaves the range is permuted again until it is back ("cycle walking"; Black & Rogaway 2002,
// "Ciphers with Arbitrary Finite Domains"). The domain is less than 4 times the range, so that
// takes under 4 rounds of the network on average.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::data {

class Shuffle {
 public:
  // `count` > 0. The order depends on nothing else than these three.
  Shuffle(int64_t count, uint64_t seed, int64_t epoch);

  // Where `index` (0 <= index < count) goes: a bijection of 0..count-1.
  int64_t operator()(int64_t index) const;

 private:
  uint64_t permute(uint64_t value) const;

  uint64_t count_;
  int half_bits_;
  std::array<uint64_t, 8> keys_;
};

}  // namespace plimsoll::data
