#include <algorithm>

#include "plimsoll/base/units.h"
#include "plimsoll/config/fields.h"
#include "plimsoll/data/tokenizer.h"

namespace plimsoll::config {

namespace {

constexpr int64_t kSequenceLength = 256;

void check_schedule(const Config& config) {
  if (config.schedule.warmup_steps > config.train.steps) {
    throw Error(
        Exit::usage,
        fmt::format("schedule.warmup_steps = {} is more than train.steps = {}.",
                    config.schedule.warmup_steps, config.train.steps),
        fmt::format("Use at most {} warm-up steps, or more train.steps.", config.train.steps));
  }
}

void check_batch(const step::StepConfig& step) {
  const int64_t micro = step.micro_batch;
  const int64_t global = step.global_batch;
  if (micro > 0 && global > 0 && global % micro == 0) return;
  std::string advice = "Use positive sizes.";
  if (micro > 0 && global > 0) {
    int64_t divisor = std::min(micro, global);
    while (global % divisor != 0) --divisor;
    const int64_t below = global / micro * micro;
    const std::string multiples =
        below == 0 ? fmt::format("{}", micro) : fmt::format("{} or {}", below, below + micro);
    advice =
        fmt::format("Use step.global_batch = {}, or step.micro_batch = {}.", multiples, divisor);
  }
  throw Error(
      Exit::usage,
      fmt::format("step.micro_batch = {} does not divide step.global_batch = {}.", micro, global),
      advice);
}

void check_positions(const Config& config) {
  const int64_t positions = config.model.max_positions;
  if (config.model.positions != model::Positions::learned ||
      config.step.sequence_length <= positions) {
    return;
  }
  throw Error(
      Exit::usage,
      fmt::format("step.sequence_length = {} is longer than the learned positions, "
                  "model.max_positions = {}.",
                  config.step.sequence_length, positions),
      fmt::format("Use a sequence of at most {} tokens, or more model.max_positions.", positions));
}

void check_moments(const step::OptimizerConfig& optimizer) {
  if (optimizer.moments != step::Moments::bf16) return;
  for (const auto& [key, beta] :
       {std::pair("beta1", optimizer.beta1), {"beta2", optimizer.beta2}}) {
    if (step::decays_in_bf16(beta)) continue;
    throw Error(
        Exit::usage,
        fmt::format("optimizer.{} = {} with optimizer.moments = \"bf16\": bf16 rounds so slow "
                    "a decay away, and the moment would never fall.",
                    key, beta),
        fmt::format("Use optimizer.{} up to 0.996, or optimizer.moments = \"fp32\".", key));
  }
}

void check_recipe(const Config& config) {
  const step::RecipeConfig& recipe = config.recipe;
  if (recipe.name == step::Recipe::none) return;
  if (config.step.precision != step::Precision::bf16) {
    throw Error(Exit::usage, "A recipe quantises bf16 values, but step.precision = \"fp32\".",
                "Set step.precision = \"bf16\", or recipe.name = \"none\".");
  }
  if (!recipe.bf16_weights && !recipe.cache_weights) {
    throw Error(Exit::usage,
                "recipe.bf16_weights = false and recipe.cache_weights = false leave no weights.",
                "Keep one of the two.");
  }
  if (recipe.first_bf16 + step::last_bf16_layers(recipe, config.model.layers) >=
      config.model.layers) {
    throw Error(Exit::usage,
                fmt::format("recipe.first_bf16 and recipe.last_bf16 keep all {} layers in bf16.",
                            config.model.layers),
                "Lower them, or set recipe.name = \"none\".");
  }
}

}  // namespace

step::TrainingSpec spec(const Config& config) {
  return {config.model, config.step, config.recipe, config.optimizer};
}

Config resolve(Config config) {
  if (!config.train.memory_limit.empty()) {
    parse_bytes(config.train.memory_limit, "train.memory_limit");
  }
  check_schedule(config);

  step::StepConfig& step = config.step;
  if (step.global_batch == 0) step.global_batch = step.micro_batch;
  if (step.sequence_length == 0) step.sequence_length = kSequenceLength;
  check_batch(step);
  if (config.train.eval_batches > 0) {
    config.train.eval_sequences = config.train.eval_batches * step.global_batch;
    config.train.eval_batches = 0;
  }

  if (config.model.vocab == 0) config.model.vocab = data::kByteVocabulary;
  const bool learned =
      config.model.positions.value_or(model::features_of(config.model.family).positions) ==
      model::Positions::learned;
  if (learned && config.model.max_positions == 0) {
    config.model.max_positions = step.sequence_length;
  }
  config.model = model::resolve(config.model);
  check_positions(config);
  check_recipe(config);
  check_moments(config.optimizer);
  for (const Table& table : tables(config)) {
    for (const Field& field : table.fields) {
      if (!accepts(field)) throw refusal(table.name + "." + field.key, field, toml_text(field));
    }
  }

  const int64_t tokens = step.micro_batch * step.sequence_length;
  if (step.head_chunk == 0) step.head_chunk = step::derived_head_chunk(config.model.vocab, tokens);
  step.head_chunk = std::min(step.head_chunk, tokens);

  step::require_plannable(spec(config));
  return config;
}

}  // namespace plimsoll::config
