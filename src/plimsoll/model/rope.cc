#include "plimsoll/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plimsoll/base/error.h"

namespace plimsoll::model {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Llama 3.1's: by the length of the wave, in tokens.
double llama3(const RopeConfig& rope, double frequency) {
  const double original = static_cast<double>(rope.original_positions);
  const double wave = kTurn / frequency;
  if (wave > original / rope.low_freq_factor) return frequency / rope.factor;
  if (wave < original / rope.high_freq_factor) return frequency;
  const double smooth =
      (original / wave - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// The pair, as a real number, that turns `turns` times in the original length.
double pair_of(const RopeConfig& rope, int64_t head_dim, double turns) {
  return static_cast<double>(head_dim) *
         std::log(static_cast<double>(rope.original_positions) / (turns * kTurn)) /
         (2 * std::log(rope.theta));
}

// YaRN, equations 17 to 22: the ramp goes over the pairs between beta_fast and beta_slow turns.
void scale_yarn(const RopeConfig& rope, int64_t head_dim, std::vector<double>& radians) {
  const double low = std::max(std::floor(pair_of(rope, head_dim, rope.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(rope, head_dim, rope.beta_slow)),
                         static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // no division by zero
  for (size_t i = 0; i < radians.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    radians[i] = radians[i] / rope.factor * ramp + radians[i] * (1 - ramp);
  }
}

void require(bool condition, const std::string& message, const std::string& advice) {
  if (!condition) throw Error(Exit::usage, message, advice);
}

}  // namespace

void check_rope(const RopeConfig& rope) {
  const std::string scaling = fmt::format("model.rope_scaling = \"{}\"", name(rope.scaling));
  if (rope.scaling == RopeScaling::none) {
    require(rope.factor == 1,
            fmt::format("model.rope_factor = {} has no effect with {}.", rope.factor, scaling),
            "Set model.rope_scaling to linear, llama3 or yarn, or leave the factor out.");
    return;
  }
  require(rope.factor >= 1, fmt::format("model.rope_factor = {} is below 1.", rope.factor),
          "Give how many times longer sequences become, for example 8.");
  if (rope.scaling == RopeScaling::linear) return;
  require(rope.original_positions > 0, scaling + " needs model.rope_original_positions.",
          "Give the sequence length before the scaling, for example 8192.");
  if (rope.scaling == RopeScaling::llama3) {
    require(rope.low_freq_factor < rope.high_freq_factor,
            fmt::format("model.rope_low_freq_factor = {} is not below "
                        "model.rope_high_freq_factor = {}.",
                        rope.low_freq_factor, rope.high_freq_factor),
            "Llama 3.1 has 1 and 4.");
    return;
  }
  require(rope.beta_slow < rope.beta_fast,
          fmt::format("model.rope_beta_slow = {} is not below model.rope_beta_fast = {}.",
                      rope.beta_slow, rope.beta_fast),
          "YaRN has 1 and 32.");
  require(rope.theta != 1, "model.rope_theta = 1 turns all pairs alike: yarn cannot tell them.",
          "Use a model.rope_theta above 1, for example 10000.");
}

RopeFrequencies rope_frequencies(const RopeConfig& rope, int64_t head_dim) {
  RopeFrequencies all;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    all.radians.push_back(
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
  }
  switch (rope.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      for (double& radians : all.radians) radians /= rope.factor;
      break;
    case RopeScaling::llama3:
      for (double& radians : all.radians) radians = llama3(rope, radians);
      break;
    case RopeScaling::yarn:
      scale_yarn(rope, head_dim, all.radians);
      all.amplitude =
          rope.attention_factor > 0 ? rope.attention_factor : 0.1 * std::log(rope.factor) + 1;
      break;
  }
  return all;
}

}  // namespace plimsoll::model
