// 2000 random blocks, from subnormal to huge, with ties, zeros, Inf and NaN, come out as the
// reference says: scales and codes of every recipe, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "golden_codes.h"
#include "plimsoll/numerics/hadamard.h"
#include "plimsoll/numerics/scaling.h"

namespace plimsoll {
namespace {

// `block` of numerics_codes.py: one word that shapes the block, and the values.
struct Input {
  uint32_t head;
  std::array<float, 32> x;
};

Input input_block(uint32_t number) {
  Input input{philox({number, 0, 1, 0}, {2026, 7})[0], {}};
  const uint32_t head = input.head;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t word = philox({number, i / 4, 0, 0}, {2026, 7})[i % 4];
    const uint32_t sign = word & 0x8000, mantissa = word & 0x7f, eighth = word >> 16 & 7;
    uint32_t bits = word & 0xffff;
    if (number % 4 == 1) {
      bits = sign | (head % 255 > eighth ? head % 255 - eighth : 0) << 7 | mantissa;
    } else if (number % 4 == 2) {
      bits = sign | (100 + head % 56 - eighth) << 7 | (mantissa & 0x70);
    } else if (number % 4 == 3) {
      bits = sign | (118 + head % 16 - (eighth & 3)) << 7 | mantissa;
      if ((word >> 20 & 7) == 0) bits = sign;
    }
    if (number % 16 == 7 && i == (head >> 8 & 31)) bits = 0x7f80;
    if (number % 16 == 15 && i == (head >> 8 & 31)) bits = 0x7fc0;
    input.x[i] = std::bit_cast<float>(bits << 16);
  }
  return input;
}

using Bytes = std::vector<uint8_t>;

uint32_t fnv1a(const Bytes& bytes) {
  uint32_t hash = 0x811c9dc5u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x01000193u;
  return hash;
}

void append(Bytes& bytes, float value) {
  const auto bits = std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(bits >> (8 * i)));
}

template <typename Block>
void append(Bytes& bytes, const Block& block) {
  bytes.push_back(block.scale);
  bytes.insert(bytes.end(), block.codes.begin(), block.codes.end());
}

template <MiniFloat F>
void append_mx(Bytes& bytes, const Input& input) {
  append(bytes, quantize_mx<F>(input.x));
  append(bytes, quantize_mx<F>(input.x, MxRule::floor));
}

template <MiniFloat F>
void append_tensor(Bytes& bytes, const Input& input, float scale) {
  append(bytes, scale);
  for (const float x : input.x) bytes.push_back(encode<F>(x * scale));
}

// `outcome` of numerics_codes.py.
std::array<uint32_t, 7> outcome(uint32_t number) {
  const Input input = input_block(number);
  const float largest = amax(input.x);
  const std::span<const float, 32> x(input.x);
  const std::span<const float, 16> halves[] = {x.first<16>(), x.last<16>()};
  const float s_enc = nvfp4_encode_scale(largest * static_cast<float>(1 << (input.head >> 16 & 3)));

  std::array<Bytes, 7> groups;
  append_mx<e4m3>(groups[0], input);
  append_mx<e5m2>(groups[1], input);
  append_mx<e2m1>(groups[1], input);
  append(groups[2], s_enc);
  for (const Nvfp4Variant variant :
       {Nvfp4Variant::te, Nvfp4Variant::paper, Nvfp4Variant::torchao}) {
    for (const auto half : halves) {
      append(groups[variant == Nvfp4Variant::te ? 2 : 3],
             quantize_nvfp4_block(half, s_enc, variant));
    }
  }
  for (uint32_t half = 0; half < 2; ++half) {
    append(groups[4],
           quantize_nvfp4_block(halves[half], nvfp4_block_scale(amax(halves[half]), s_enc),
                                random_bytes16(StreamKey{2026, number, 1, 2, 3}, half)));
  }
  float transformed[16];
  hadamard16(halves[0], transformed);
  for (const float y : transformed) {
    const uint16_t bits = bf16(y).bits;
    groups[5].push_back(static_cast<uint8_t>(bits));
    groups[5].push_back(static_cast<uint8_t>(bits >> 8));
  }
  append_tensor<e4m3>(groups[6], input, tensor_scale(largest, max_finite<e4m3>, false));
  append_tensor<e5m2>(groups[6], input, tensor_scale(largest, max_finite<e5m2>, false));
  append_tensor<e4m3>(groups[6], input, block_scale_1x128(largest));

  std::array<uint32_t, 7> hashes;
  for (int i = 0; i < 7; ++i) hashes[i] = fnv1a(groups[i]);
  return hashes;
}

TEST(ScalingGolden, QuantisesRandomBlocksAsTheReference) {
  const char* names[] = {"MX E4M3",
                         "MX E5M2 and E2M1",
                         "NVFP4 te",
                         "NVFP4 paper and torchao",
                         "NVFP4 te, stochastic",
                         "Hadamard",
                         "tensor"};
  ASSERT_EQ(golden_codes().blocks.size(), 2000u);
  for (uint32_t number = 0; number < 2000; ++number) {
    const auto hashes = outcome(number);
    for (int i = 0; i < 7; ++i) {
      ASSERT_EQ(hashes[i], golden_codes().blocks[number][i]) << names[i] << ", block " << number;
    }
  }
}

}  // namespace
}  // namespace plimsoll
