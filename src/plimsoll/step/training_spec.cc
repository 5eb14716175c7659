#include "plimsoll/step/training_spec.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/step/passes/chunk_ffn.h"
#include "plimsoll/step/passes/precision.h"

namespace plimsoll::step {

namespace {

// Bytes beyond any machine, far enough from 2^63 that no sum of a plan comes near it.
constexpr double most_bytes = 0x1p59;

struct Key {
  const char* name;
  int64_t value;
};

// A rough upper bound of some bytes of a step as a product, and the keys that make it large.
struct Product {
  const char* what;
  double bytes;
  std::vector<Key> keys;
};

std::vector<Product> products_of(const TrainingSpec& spec) {
  const model::ModelConfig& m = spec.model;
  const StepConfig& s = spec.step;
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const double layers = number(m.layers), hidden = number(m.hidden), ffn = number(m.ffn_hidden);
  const double heads = number(m.heads) + 2 * number(m.query_groups);
  const double tokens = number(s.micro_batch) * number(s.sequence_length);
  // Of a weight: master, compute, gradient, moments, snapshot, quantised copies. Of a token: what a
  // layer saves, with gradients, copies and scratch, in f32.
  constexpr double weight_bytes = 64, token_bytes = 64;
  const Key key_layers = {"model.layers", m.layers}, key_hidden = {"model.hidden", m.hidden},
            key_heads = {"model.heads", m.heads}, key_dim = {"model.head_dim", m.head_dim},
            key_ffn = {"model.ffn_hidden", m.ffn_hidden}, key_vocab = {"model.vocab", m.vocab},
            key_micro = {"step.micro_batch", s.micro_batch},
            key_sequence = {"step.sequence_length", s.sequence_length};
  return {
      {"the attention's weights", weight_bytes * layers * heads * number(m.head_dim) * hidden * 2,
       {key_heads, key_dim, key_hidden, key_layers}},
      {"the MLP's weights", weight_bytes * layers * hidden * ffn * 3,
       {key_hidden, key_ffn, key_layers}},
      {"the embedding", weight_bytes * hidden * (2 * number(m.vocab) + number(m.max_positions)),
       {key_vocab, key_hidden, {"model.max_positions", m.max_positions}}},
      {"the attention's activations",
       token_bytes * tokens * layers * heads * (number(m.head_dim) + 1),
       {key_micro, key_sequence, key_heads, key_dim, key_layers}},
      {"the MLP's activations", token_bytes * tokens * layers * ffn * 3,
       {key_micro, key_sequence, key_ffn, key_layers}},
      {"the residual stream", token_bytes * tokens * layers * hidden,
       {key_micro, key_sequence, key_hidden, key_layers}},
      {"the logits", 16 * number(s.head_chunk) * number(m.vocab),
       {{"step.head_chunk", s.head_chunk}, key_vocab}},
      {"the positions", 16 * number(s.sequence_length) * number(m.head_dim),
       {key_sequence, key_dim}},
      {"the quantisers' histories", 128 * layers * number(spec.recipe.history),
       {{"recipe.history", spec.recipe.history}, key_layers}},
      {"a step's tokens", 64 * number(s.global_batch) * number(s.sequence_length),
       {{"step.global_batch", s.global_batch}, key_sequence}},
  };
}

void require_countable(const TrainingSpec& spec) {
  for (Product& product : products_of(spec)) {
    if (product.bytes < most_bytes) continue;
    std::stable_sort(product.keys.begin(), product.keys.end(),
                     [](const Key& a, const Key& b) { return a.value > b.value; });
    std::string others;
    for (size_t i = 1; i < product.keys.size(); ++i) {
      if (product.keys[i].value < 2) continue;
      others += fmt::format("{}{} = {}", others.empty() ? " with " : ", ", product.keys[i].name,
                            product.keys[i].value);
    }
    throw Error(Exit::usage,
                fmt::format("{} = {}{}: {} would take about {:.1g} bytes.", product.keys[0].name,
                            product.keys[0].value, others, product.what, product.bytes),
                fmt::format("No machine holds that: lower {}.", product.keys[0].name));
  }
}

int64_t chunks(int64_t tokens, int64_t chunk) { return chunk <= 0 ? 1 : (tokens + chunk - 1) / chunk; }

// Ops of a layer, forward, backward, recomputed and optimizer, without its FFN's chunks; and of one
// chunk. Rough upper bounds, with what a recipe adds.
void require_ops(const TrainingSpec& spec) {
  const StepConfig& s = spec.step;
  const bool recipe = spec.recipe.name != Recipe::none;
  const int64_t layer = recipe ? 120 : 60, ffn_chunk_ops = recipe ? 24 : 13, head_chunk_ops = 4;
  const int64_t tokens = s.micro_batch * s.sequence_length;
  const int64_t head = chunks(tokens, s.head_chunk) * head_chunk_ops;
  const int64_t layers = spec.model.layers * layer;
  const int64_t ffn = s.ffn_chunk == 0 ? 0 : chunks(tokens, s.ffn_chunk) * ffn_chunk_ops;
  const auto too_many = [&](const char* key, int64_t value, const std::string& advice) {
    return Error(Exit::usage,
                 fmt::format("{} = {} makes a step of more than {} operations.", key, value, most_ops),
                 advice);
  };
  if (layers > most_ops / 2) {
    throw too_many("model.layers", spec.model.layers,
                   fmt::format("Use at most {} layers.", most_ops / 2 / layer));
  }
  if (head > most_ops / 4) {
    const int64_t least = chunks(tokens, most_ops / 4 / head_chunk_ops);
    throw too_many("step.head_chunk", s.head_chunk,
                   fmt::format("Leave it out, or use at least {} for {} tokens.", least, tokens));
  }
  if (ffn > most_ops / 2 / spec.model.layers) {
    const int64_t most = std::max<int64_t>(1, most_ops / 2 / spec.model.layers / ffn_chunk_ops);
    throw too_many("step.ffn_chunk", s.ffn_chunk,
                   fmt::format("Leave it out, or use at least {} for {} tokens in {} layers.",
                               chunks(tokens, most), tokens, spec.model.layers));
  }
}

}  // namespace

int64_t derived_head_chunk(int64_t vocab, int64_t tokens) {
  constexpr int64_t logits_bytes = int64_t{32} << 20;
  constexpr int64_t granule = 64;  // chunks are multiples of it, for the matrix products
  constexpr int64_t most_chunks = 1024;
  constexpr int64_t longest = int64_t{1} << 24;  // what step.head_chunk may be
  const int64_t by_bytes = logits_bytes / (vocab * static_cast<int64_t>(sizeof(float))) / granule;
  const int64_t by_count = chunks(tokens, most_chunks * granule);
  return std::min({tokens, longest, std::max({by_bytes, by_count, int64_t{1}}) * granule});
}

void require_plannable(const TrainingSpec& spec) {
  require_countable(spec);
  require_ops(spec);
}

TrainingStep build(const TrainingSpec& spec) {
  require_plannable(spec);
  TrainingStep step = build_training_step(spec.model, spec.step, spec.optimizer);
  step.program = chunk_ffn(std::move(step.program), spec.step.ffn_chunk);
  return apply_recipe(std::move(step), spec.recipe, spec.model.layers);
}

}  // namespace plimsoll::step
