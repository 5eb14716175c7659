// Rotary positions: the frequencies of the pairs, and how they are scaled for longer sequences.
//
// With d = head_dim, pair i < d/2 turns by f(i) radians a token, f(i) = theta^(-2i/d).
// Su et al. 2021, "RoFormer". The scalings follow Hugging Face's modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll::model {

enum class RopeScaling : uint8_t {
  none,    // f
  linear,  // f / factor
  llama3,  // f / factor for long waves, f for short ones, between them a mixture (Llama 3.1)
  yarn,    // the same with a ramp over the pairs, and the rotation is scaled (Peng et al. 2023)
};
constexpr std::string_view name(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
      return "default";  // Hugging Face's name
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::llama3:
      return "llama3";
    case RopeScaling::yarn:
      return "yarn";
  }
  return "";
}

struct RopeConfig {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;               // how many times longer sequences become
  int64_t original_positions = 0;  // llama3, yarn: the length before
  double low_freq_factor = 1;   // llama3: waves longer than original / this are divided by factor
  double high_freq_factor = 4;  // llama3: waves shorter than original / this stay
  double beta_fast = 32;        // yarn: pairs with more turns in the original length stay
  double beta_slow = 1;         // yarn: pairs with fewer are divided by factor
  double attention_factor = 0;  // yarn: of the rotation; 0: 0.1 ln(factor) + 1
  bool operator==(const RopeConfig&) const = default;
};

// Raises Exit::usage for a scaling without what it needs, and for settings that nothing would read.
void check_rope(const RopeConfig&);

struct RopeFrequencies {
  std::vector<double> radians;  // a token, of each pair
  double amplitude = 1;         // of sine and cosine
};
RopeFrequencies rope_frequencies(const RopeConfig&, int64_t head_dim);

}  // namespace plimsoll::model
