#include "plimsoll/model/model_config.h"

#include "plimsoll/base/divisors.h"
#include "plimsoll/base/error.h"

namespace plimsoll::model {

namespace {

void require_positive(const char* key, int64_t value, const char* advice) {
  if (value > 0) return;
  throw Error(Exit::usage, fmt::format("{} = {} is not positive.", key, value), advice);
}

void require_divides(const char* key, int64_t value, const char* whole_key, int64_t whole,
                     const char* otherwise) {
  if (whole % value == 0) return;
  throw Error(Exit::usage,
              fmt::format("{} = {} does not divide {} = {}.", key, value, whole_key, whole),
              fmt::format("Use one of {}{}.", fmt::join(divisors_of(whole), ", "), otherwise));
}

void fill_features(ModelConfig& config) {
  const Features family = features_of(config.family);
  config.norm = config.norm.value_or(family.norm);
  config.positions = config.positions.value_or(family.positions);
  config.activation = config.activation.value_or(family.activation);
  config.qkv_bias = config.qkv_bias.value_or(family.qkv_bias);
  config.output_bias = config.output_bias.value_or(family.output_bias);
  config.mlp_bias = config.mlp_bias.value_or(family.mlp_bias);
}

void check_positions(const ModelConfig& config) {
  if (config.positions == Positions::learned) {
    require_positive("model.max_positions", config.max_positions,
                     "Give the rows of the learned position table (1024 in GPT-2).");
    return;
  }
  if (config.head_dim % 2 != 0) {
    throw Error(
        Exit::usage,
        fmt::format("model.head_dim = {} is odd: rotary positions rotate pairs.", config.head_dim),
        fmt::format("Use an even model.head_dim, for example {}.", config.head_dim + 1));
  }
  check_rope(config.rope);
}

void check_window(const ModelConfig& config) {
  if (config.sliding_window == 0) return;
  throw Error(Exit::usage,
              fmt::format("model.sliding_window = {}: attention has no window yet, it sees the "
                          "whole sequence.",
                          config.sliding_window),
              fmt::format("Leave it out: up to step.sequence_length = {} it changes nothing.",
                          config.sliding_window));
}

}  // namespace

ModelConfig resolve(ModelConfig config) {
  constexpr const char* shape = "Name a model.preset, or give model.layers, hidden and heads.";
  require_positive("model.layers", config.layers, shape);
  require_positive("model.hidden", config.hidden, shape);
  require_positive("model.heads", config.heads, shape);
  require_positive("model.vocab", config.vocab, "Give the vocabulary size of the tokenizer.");

  if (config.query_groups == 0) config.query_groups = config.heads;
  require_positive("model.query_groups", config.query_groups,
                   "Leave it out for as many groups as heads.");
  require_divides("model.query_groups", config.query_groups, "model.heads", config.heads, "");

  if (config.head_dim == 0) {
    require_divides("model.heads", config.heads, "model.hidden", config.hidden,
                    ", or give model.head_dim");
    config.head_dim = config.hidden / config.heads;
  }
  require_positive("model.head_dim", config.head_dim, "Leave it out for hidden / heads.");

  fill_features(config);
  if (config.ffn_hidden == 0) {
    config.ffn_hidden = is_gated(*config.activation)
                            ? (8 * config.hidden + 3 * 64 - 1) / (3 * 64) * 64
                            : 4 * config.hidden;
  }
  require_positive("model.ffn_hidden", config.ffn_hidden, "Leave it out for the usual width.");

  check_positions(config);
  check_window(config);
  return config;
}

}  // namespace plimsoll::model
