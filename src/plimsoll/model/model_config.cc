#include "plimsoll/model/model_config.h"

#include "plimsoll/base/error.h"

namespace plimsoll::model {

namespace {

void require_positive(const char* key, int64_t value, const char* advice) {
  if (value > 0) return;
  throw Error(Exit::usage, fmt::format("{} = {} is not positive.", key, value), advice);
}

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

void require_divides(const char* key, int64_t value, const char* whole_key, int64_t whole,
                     const char* otherwise) {
  if (whole % value == 0) return;
  throw Error(Exit::usage,
              fmt::format("{} = {} does not divide {} = {}.", key, value, whole_key, whole),
              fmt::format("Use one of {}{}.", fmt::join(divisors(whole), ", "), otherwise));
}

// What the GPT-2 family does not have.
void check_gpt2(const ModelConfig& config) {
  if (config.query_groups != config.heads) {
    throw Error(Exit::usage,
                fmt::format("model.query_groups = {} is not model.heads = {}: GPT-2 has no grouped "
                            "queries.",
                            config.query_groups, config.heads),
                "Leave model.query_groups out, or use model.family = \"llama\".");
  }
  if (!config.tied_head) {
    throw Error(Exit::usage, "model.tied_head = false: the head of GPT-2 is its token embedding.",
                "Leave model.tied_head out, or use model.family = \"llama\".");
  }
  if (config.qk_norm) {
    throw Error(Exit::usage, "model.qk_norm = true: GPT-2 does not normalise queries and keys.",
                "Leave model.qk_norm out, or use model.family = \"llama\".");
  }
  require_positive("model.max_positions", config.max_positions,
                   "Give the rows of the learned position table (1024 in GPT-2).");
}

void check_llama(const ModelConfig& config) {
  if (config.head_dim % 2 != 0) {
    throw Error(
        Exit::usage,
        fmt::format("model.head_dim = {} is odd: rotary positions rotate pairs.", config.head_dim),
        fmt::format("Use an even model.head_dim, for example {}.", config.head_dim + 1));
  }
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

  if (config.ffn_hidden == 0) {
    config.ffn_hidden = config.family == Family::gpt2
                            ? 4 * config.hidden
                            : (8 * config.hidden + 3 * 64 - 1) / (3 * 64) * 64;
  }
  require_positive("model.ffn_hidden", config.ffn_hidden,
                   "Leave it out for the family's usual width.");

  if (config.family == Family::gpt2) check_gpt2(config);
  if (config.family == Family::llama) check_llama(config);
  return config;
}

}  // namespace plimsoll::model
