#include "plimsoll/step/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plimsoll::step {

namespace {

LinearQuantization all(const Quantization& q) { return {q, q, q, q, q, q}; }

// The same with the gradients in the format of the config, or as published.
LinearQuantization with_gradients(LinearQuantization q, const RecipeConfig& recipe,
                                  Format published) {
  Format format = published;
  switch (recipe.gradient_format) {
    case GradientFormat::published:
      break;
    case GradientFormat::e4m3:
      format = Format::e4m3;
      break;
    case GradientFormat::e5m2:
      format = Format::e5m2;
      break;
  }
  q.gradient.format = q.gradient_columns.format = format;
  return q;
}

std::string_view gradients_of(const RecipeConfig& recipe) {
  return name(quantization_of(recipe).gradient.format);
}

LinearQuantization no_quantization(const RecipeConfig&) { return {}; }
std::string no_description(const RecipeConfig&) { return ""; }

LinearQuantization fp16(const RecipeConfig&) {
  return all({.format = Format::f16, .scaling = Scaling::loss});
}
std::string describe_fp16(const RecipeConfig& recipe) {
  return fmt::format("FP16: dynamic loss scale from 2^{}, doubled after {} steps",
                     recipe.loss_scale_log2, recipe.loss_scale_growth);
}

LinearQuantization fp8_delayed(const RecipeConfig& recipe) {
  return with_gradients(all({.format = Format::e4m3, .scaling = Scaling::delayed}), recipe,
                        Format::e5m2);
}
std::string describe_fp8_delayed(const RecipeConfig& recipe) {
  return fmt::format("FP8 delayed scaling: e4m3, gradients {}, {} of {} steps, margin {}",
                     gradients_of(recipe),
                     recipe.algorithm == AmaxAlgorithm::max ? "largest" : "most recent",
                     recipe.history, recipe.margin);
}

LinearQuantization fp8_current(const RecipeConfig& recipe) {
  return with_gradients(all({.format = Format::e4m3,
                             .scaling = Scaling::current,
                             .power_of_two = recipe.power_of_two}),
                        recipe, Format::e5m2);
}
std::string describe_fp8_current(const RecipeConfig& recipe) {
  return fmt::format("FP8 current scaling: e4m3, gradients {}, {} scales", gradients_of(recipe),
                     recipe.power_of_two ? "power-of-two" : "f32");
}

LinearQuantization fp8_block(const RecipeConfig& recipe) {
  LinearQuantization q = all({.format = Format::e4m3, .scaling = Scaling::block_1x128});
  q.weight.scaling = q.weight_columns.scaling = Scaling::block_128x128;
  return with_gradients(q, recipe, Format::e4m3);
}
std::string describe_fp8_block(const RecipeConfig& recipe) {
  return fmt::format(
      "FP8 block scaling: e4m3, gradients {}, 1x128 and 128x128 blocks, power-of-two scales",
      gradients_of(recipe));
}

LinearQuantization mxfp8(const RecipeConfig& recipe) {
  return with_gradients(
      all({.format = Format::e4m3, .scaling = Scaling::mx, .mx_rule = recipe.mx_rule}), recipe,
      Format::e4m3);
}
std::string describe_mxfp8(const RecipeConfig& recipe) {
  return fmt::format("MXFP8: e4m3, gradients {}, 1x32 blocks, {} e8m0 scales", gradients_of(recipe),
                     recipe.mx_rule == MxRule::round_up ? "round-up" : "OCP floor");
}

LinearQuantization nvfp4(const RecipeConfig& recipe) {
  LinearQuantization q =
      all({.format = Format::e2m1, .scaling = Scaling::nvfp4_1x16, .variant = recipe.variant});
  q.weight.scaling = recipe.weight_tiles ? Scaling::nvfp4_16x16 : Scaling::nvfp4_1x16;
  q.weight_columns = q.weight;
  q.input_columns.hadamard = q.gradient_columns.hadamard = recipe.hadamard;
  q.gradient.stochastic = q.gradient_columns.stochastic = recipe.stochastic_rounding;
  return q;
}
std::string describe_nvfp4(const RecipeConfig& recipe) {
  const auto whose = [](Nvfp4Variant variant) {
    return variant == Nvfp4Variant::te ? std::string_view("TransformerEngine") : name(variant);
  };
  return fmt::format(
      "NVFP4: e2m1, 1x16 blocks, weights {}, {}, {}, scales as {}",
      recipe.weight_tiles ? "16x16" : "1x16",
      recipe.hadamard ? "Hadamard in the weight gradient" : "no Hadamard",
      recipe.stochastic_rounding ? "gradients rounded stochastically" : "all rounded to nearest",
      whose(recipe.variant));
}

constexpr RecipeTraits table[] = {
    {Recipe::none, "none", false, 0, no_quantization, no_description},
    {Recipe::fp16, "fp16", false, 0, fp16, describe_fp16},
    {Recipe::fp8_delayed, "fp8_delayed", false, 0, fp8_delayed, describe_fp8_delayed},
    {Recipe::fp8_current, "fp8_current", false, 0, fp8_current, describe_fp8_current},
    {Recipe::fp8_block, "fp8_block", false, 0, fp8_block, describe_fp8_block},
    {Recipe::mxfp8, "mxfp8", false, 0, mxfp8, describe_mxfp8},
    {Recipe::nvfp4, "nvfp4", true, 15, nvfp4, describe_nvfp4},
};

static_assert([] {
  for (size_t i = 0; i < std::size(table); ++i) {
    if (table[i].recipe != static_cast<Recipe>(i)) return false;
  }
  return true;
}());

}  // namespace

const RecipeTraits& traits(Recipe recipe) { return table[static_cast<size_t>(recipe)]; }

std::string_view name(Recipe recipe) {
  const auto index = static_cast<size_t>(recipe);
  return index < std::size(table) ? table[index].name : std::string_view();
}

std::optional<Recipe> recipe_called(std::string_view name) {
  const auto* const row = std::ranges::find(table, name, &RecipeTraits::name);
  return row == std::end(table) ? std::nullopt : std::optional(row->recipe);
}

LinearQuantization quantization_of(const RecipeConfig& recipe) {
  return traits(recipe.name).quantization(recipe);
}

bool scales_loss(const RecipeConfig& recipe) {
  return recipe.name != Recipe::none && quantization_of(recipe).gradient.scaling == Scaling::loss;
}

bool scales_delayed(const RecipeConfig& recipe) {
  return recipe.name != Recipe::none && quantization_of(recipe).input.scaling == Scaling::delayed;
}

int64_t last_bf16_layers(const RecipeConfig& recipe, int64_t layers) {
  if (recipe.last_bf16 >= 0) return recipe.last_bf16;
  return (layers * traits(recipe.name).last_bf16_percent + 99) / 100;
}

std::string describe(const RecipeConfig& recipe) { return traits(recipe.name).describe(recipe); }

}  // namespace plimsoll::step
