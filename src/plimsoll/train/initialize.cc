#include "plimsoll/train/initialize.h"

#include <algorithm>

#include "plimsoll/numerics/random.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"

namespace plimsoll::train {

void initialize(const model::Parameter& parameter, int64_t seed, std::span<float> weights,
                int64_t first) {
  switch (parameter.init) {
    case model::Init::zeros:
      std::fill(weights.begin(), weights.end(), 0.0f);
      return;
    case model::Init::ones:
      std::fill(weights.begin(), weights.end(), 1.0f);
      return;
    case model::Init::normal:
      break;
  }
  const uint64_t name = hash_name(parameter.name.c_str());
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32)};
  const int64_t count = static_cast<int64_t>(weights.size());
  cpu::parallel_for((count + 3) / 4, [&](int64_t block) {
    const int64_t index = first / 4 + block;
    const Philox words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                 static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)},
                                key);
    const std::array<double, 2> a = normal_pair(words[0], words[1]);
    const std::array<double, 2> b = normal_pair(words[2], words[3]);
    const double values[4] = {a[0], a[1], b[0], b[1]};
    for (int64_t i = 4 * block; i < std::min(count, 4 * block + 4); ++i) {
      weights[static_cast<size_t>(i)] = static_cast<float>(parameter.std * values[i % 4]);
    }
  });
}

}  // namespace plimsoll::train
