#include "plimsoll/data/shuffle.h"

#include <algorithm>
#include <bit>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace {

// The output function of SplitMix64 (Steele, Lea & Flood 2014).
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

}  // namespace

Shuffle::Shuffle(int64_t count, uint64_t seed, int64_t epoch)
    : count_(static_cast<uint64_t>(count)) {
  check(count > 0, "a shuffle of nothing");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(count_ - 1)) + 1) / 2);
  const uint64_t key = mix(mix(seed + kGolden) + static_cast<uint64_t>(epoch));
  for (size_t round = 0; round < keys_.size(); ++round) {
    keys_[round] = mix(key + (round + 1) * kGolden);
  }
}

uint64_t Shuffle::permute(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : keys_) {
    const uint64_t next = left ^ (mix(right + key) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t Shuffle::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  check(value < count_, "an index outside its shuffle");
  do {
    value = permute(value);
  } while (value >= count_);
  return static_cast<int64_t>(value);
}

}  // namespace plimsoll::data
