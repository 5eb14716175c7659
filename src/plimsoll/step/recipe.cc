#include "plimsoll/step/recipe.h"

#include <fmt/format.h>

namespace plimsoll::step {

namespace {

LinearQuantization all(const Quantization& q) { return {q, q, q, q, q, q}; }

Format gradient_format(const RecipeConfig& recipe, Format published) {
  switch (recipe.gradient_format) {
    case GradientFormat::published:
      return published;
    case GradientFormat::e4m3:
      return Format::e4m3;
    case GradientFormat::e5m2:
      return Format::e5m2;
  }
  return published;
}

LinearQuantization nvfp4(const RecipeConfig& recipe) {
  const Quantization block = {
      .format = Format::e2m1, .scaling = Scaling::nvfp4_1x16, .variant = recipe.variant};
  LinearQuantization q = all(block);
  q.weight.scaling = recipe.weight_tiles ? Scaling::nvfp4_16x16 : Scaling::nvfp4_1x16;
  q.weight_columns = q.weight;
  q.input_columns.hadamard = q.gradient_columns.hadamard = recipe.hadamard;
  q.gradient.stochastic = q.gradient_columns.stochastic = recipe.stochastic_rounding;
  return q;
}

const char* name(Nvfp4Variant variant) {
  switch (variant) {
    case Nvfp4Variant::te:
      return "TransformerEngine";
    case Nvfp4Variant::paper:
      return "paper";
    case Nvfp4Variant::torchao:
      return "torchao";
  }
  return "?";
}

}  // namespace

LinearQuantization quantization_of(const RecipeConfig& recipe) {
  LinearQuantization q;
  switch (recipe.name) {
    case Recipe::none:
      break;
    case Recipe::fp16:
      return all({.format = Format::f16, .scaling = Scaling::loss});
    case Recipe::fp8_delayed:
    case Recipe::fp8_current:
      q = all({.format = Format::e4m3,
               .scaling = recipe.name == Recipe::fp8_delayed ? Scaling::delayed : Scaling::current,
               .power_of_two = recipe.power_of_two});
      q.gradient.format = q.gradient_columns.format = gradient_format(recipe, Format::e5m2);
      break;
    case Recipe::fp8_block:
      q = all({.format = Format::e4m3, .scaling = Scaling::block_1x128});
      q.weight.scaling = q.weight_columns.scaling = Scaling::block_128x128;
      q.gradient.format = q.gradient_columns.format = gradient_format(recipe, Format::e4m3);
      break;
    case Recipe::mxfp8:
      q = all({.format = Format::e4m3, .scaling = Scaling::mx, .mx_rule = recipe.mx_rule});
      q.gradient.format = q.gradient_columns.format = gradient_format(recipe, Format::e4m3);
      break;
    case Recipe::nvfp4:
      return nvfp4(recipe);
  }
  return q;
}

int64_t last_bf16_layers(const RecipeConfig& recipe, int64_t layers) {
  if (recipe.last_bf16 >= 0) return recipe.last_bf16;
  return recipe.name == Recipe::nvfp4 ? (layers * 15 + 99) / 100 : 0;
}

std::string describe(const RecipeConfig& recipe) {
  const char* gradients = quantization_of(recipe).gradient.format == Format::e5m2 ? "e5m2" : "e4m3";
  switch (recipe.name) {
    case Recipe::none:
      return "";
    case Recipe::fp16:
      return fmt::format("FP16: dynamic loss scale from 2^{}, doubled after {} steps",
                         recipe.loss_scale_log2, recipe.loss_scale_growth);
    case Recipe::fp8_delayed:
      return fmt::format("FP8 delayed scaling: e4m3, gradients {}, {} of {} steps, margin {}",
                         gradients,
                         recipe.algorithm == AmaxAlgorithm::max ? "largest" : "most recent",
                         recipe.history, recipe.margin);
    case Recipe::fp8_current:
      return fmt::format("FP8 current scaling: e4m3, gradients {}, {} scales", gradients,
                         recipe.power_of_two ? "power-of-two" : "f32");
    case Recipe::fp8_block:
      return fmt::format(
          "FP8 block scaling: e4m3, gradients {}, 1x128 and 128x128 blocks, power-of-two scales",
          gradients);
    case Recipe::mxfp8:
      return fmt::format("MXFP8: e4m3, gradients {}, 1x32 blocks, {} e8m0 scales", gradients,
                         recipe.mx_rule == MxRule::round_up ? "round-up" : "OCP floor");
    case Recipe::nvfp4:
      return fmt::format("NVFP4: e2m1, 1x16 blocks, weights {}, {}, {}, scales as {}",
                         recipe.weight_tiles ? "16x16" : "1x16",
                         recipe.hadamard ? "Hadamard in the weight gradient" : "no Hadamard",
                         recipe.stochastic_rounding ? "gradients rounded stochastically"
                                                    : "all rounded to nearest",
                         name(recipe.variant));
  }
  return "";
}

}  // namespace plimsoll::step
