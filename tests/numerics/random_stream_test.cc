// Random bytes belong to (seed, step, micro-step, layer, tensor, element) and to nothing else.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "golden_codes.h"
#include "plimsoll/numerics/stochastic.h"

namespace plimsoll {
namespace {

std::string hexadecimal(const PhiloxBytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(RandomStream, GivesTheBytesOfTheWrittenLayout) {
  ASSERT_FALSE(golden_codes().streams.empty());
  for (const GoldenStream& golden : golden_codes().streams) {
    EXPECT_EQ(hexadecimal(random_bytes16(golden.key, golden.group)), golden.bytes);
  }
}

TEST(RandomStream, GivesAnElementTheSameByteHoweverItIsAsked) {
  const StreamKey key{2026, 5, 1, 3, 9};
  const RandomStream stream = random_stream(key);
  for (uint64_t element = (uint64_t{1} << 36) - 40; element < (uint64_t{1} << 36) + 40; ++element) {
    EXPECT_EQ(random_byte(key, element), random_bytes16(stream, element / 16)[element % 16]);
    EXPECT_EQ(random_byte(key, element), random_bytes16(key, element / 16)[element % 16]);
  }
}

TEST(RandomStream, DiffersWheneverOnePartOfTheKeyDiffers) {
  std::set<std::string> seen;
  const StreamKey key{1, 1, 1, 1, 1};
  StreamKey seed = key, high_seed = key, step = key, micro_step = key, layer = key, tensor = key;
  seed.seed = 2;
  high_seed.seed = (uint64_t{1} << 32) + 1;
  step.step = 2;
  micro_step.micro_step = 2;
  layer.layer = 2;
  tensor.tensor = 2;
  for (const StreamKey& each : {key, seed, high_seed, step, micro_step, layer, tensor}) {
    for (const uint64_t group : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
      seen.insert(hexadecimal(random_bytes16(each, group)));
    }
  }
  EXPECT_EQ(seen.size(), 21u);
}

// Chi-square with 255 degrees of freedom: mean 255, standard deviation 22.6; within five of them.
double chi_square(const std::array<int, 256>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(RandomStream, IsUniformWithinAStream) {
  const RandomStream stream = random_stream({2026, 1, 0, 2, 7});
  std::array<int, 256> counts{};
  for (uint64_t group = 0; group < 4096; ++group) {
    for (const uint8_t byte : random_bytes16(stream, group)) ++counts[byte];
  }
  EXPECT_NEAR(chi_square(counts, 256), 255, 5 * 22.6);
}

TEST(RandomStream, IsUniformAcrossStreams) {
  std::array<int, 256> counts{}, differences{};
  for (uint32_t step = 0; step < 4096; ++step) {
    const PhiloxBytes now = random_bytes16(StreamKey{2026, step, 0, 2, 7}, 3);
    const PhiloxBytes next = random_bytes16(StreamKey{2026, step + 1, 0, 2, 7}, 3);
    for (int i = 0; i < 16; ++i) {
      ++counts[now[i]];
      ++differences[static_cast<uint8_t>(next[i] - now[i])];
    }
  }
  EXPECT_NEAR(chi_square(counts, 256), 255, 5 * 22.6);
  EXPECT_NEAR(chi_square(differences, 256), 255, 5 * 22.6);
}

}  // namespace
}  // namespace plimsoll
