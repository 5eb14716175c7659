// Reduced-precision recipes: which operand of which product is quantised, and how.
//
// The published defaults, with the arithmetic of TransformerEngine 2.20 where tools differ
// (docs/precision.md lists the choices).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/numerics/delayed_scaling.h"
#include "plimsoll/numerics/quantization.h"

namespace plimsoll::step {

// Each has one row of the table in recipe.cc, in this order.
enum class Recipe : uint8_t { none, fp16, fp8_delayed, fp8_current, fp8_block, mxfp8, nvfp4 };
std::string_view name(Recipe recipe);

enum class GradientFormat : uint8_t { published, e4m3, e5m2 };
constexpr std::string_view name(GradientFormat format) {
  switch (format) {
    case GradientFormat::published:
      return "published";
    case GradientFormat::e4m3:
      return "e4m3";
    case GradientFormat::e5m2:
      return "e5m2";
  }
  return "";
}

struct RecipeConfig {
  Recipe name = Recipe::none;
  int64_t first_bf16 = 0;   // layers at the beginning whose products stay in bf16
  int64_t last_bf16 = -1;   // layers at the end; -1: 15 % of them for nvfp4, else none
  std::string bf16_layers;  // weights whose products stay in bf16: names or patterns with *
  GradientFormat gradient_format = GradientFormat::published;  // of the 8 bit recipes
  int64_t margin = 0;      // fp8_delayed: scales are 2^margin smaller
  int64_t history = 1024;  // fp8_delayed: steps whose magnitudes are remembered
  AmaxAlgorithm algorithm = AmaxAlgorithm::max;  // fp8_delayed: of the history
  bool power_of_two = false;                     // fp8_current: scales are powers of two
  MxRule mx_rule = MxRule::round_up;             // mxfp8
  Nvfp4Variant variant = Nvfp4Variant::te;       // nvfp4: who rounds the block scale how
  bool hadamard = true;              // nvfp4: transform both operands of the weight gradient
  bool stochastic_rounding = true;   // nvfp4: of the output gradients
  bool weight_tiles = true;          // nvfp4: 16 x 16 tiles of weights, else 1 x 16 blocks
  bool cache_weights = true;         // quantise weights once an optimizer step and keep them
  bool bf16_weights = true;          // keep bf16 weights beside the quantised ones
  int64_t statistics_every = 100;    // steps between statistics in metrics.jsonl; 0: never
  int64_t loss_scale_log2 = 16;      // fp16: the first loss scale, as a power of two
  int64_t loss_scale_growth = 2000;  // fp16: steps without overflow until it doubles
};

// How the six quantised matrices of a linear layer are made: its input, its weight and the gradient
// of its output, each along both dimensions.
struct LinearQuantization {
  Quantization input, input_columns;
  Quantization weight, weight_columns;
  Quantization gradient, gradient_columns;
};

// What a recipe is: one row a recipe, and the only place that tells them apart.
struct RecipeTraits {
  Recipe recipe;
  std::string_view name;  // in configs and comparisons
  bool costs_loss;        // as published, even where it works: comparisons expect a small gap
  int last_bf16_percent;  // of the layers, whose products stay in bf16 unless the config says
  LinearQuantization (*quantization)(const RecipeConfig&);
  std::string (*describe)(const RecipeConfig&);
};
const RecipeTraits& traits(Recipe recipe);

// The recipe that configs call `name`.
std::optional<Recipe> recipe_called(std::string_view name);

LinearQuantization quantization_of(const RecipeConfig& recipe);

// Whether operands are scaled by the loss scale, or by magnitudes of earlier steps.
bool scales_loss(const RecipeConfig& recipe);
bool scales_delayed(const RecipeConfig& recipe);

// The last layers that stay in bf16, -1 resolved.
int64_t last_bf16_layers(const RecipeConfig& recipe, int64_t layers);

// "MXFP8: e4m3, 1x32 blocks, round-up e8m0 scales" - for logs; empty for Recipe::none.
std::string describe(const RecipeConfig& recipe);

}  // namespace plimsoll::step
