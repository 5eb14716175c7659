// The shape of a transformer language model.
//
// Every feature can be chosen by itself (features.h); the family sets those that are left open:
// GPT-2's are LayerNorm, learned positions, biases and GELU, Llama's RMSNorm, RoPE and SwiGLU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/features.h"
#include "plimsoll/model/rope.h"

namespace plimsoll::model {

struct ModelConfig {
  std::string preset;             // name this shape started from; empty when given key by key
  Family family = Family::llama;  // read by `resolve` only, for the features left open
  std::optional<Norm> norm;
  std::optional<Positions> positions;
  std::optional<Activation> activation;
  std::optional<bool> qkv_bias;     // of the product that makes queries, keys and values
  std::optional<bool> output_bias;  // of attention's output product
  std::optional<bool> mlp_bias;     // of both products of the MLP
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_groups = 0;   // key and value heads; 0: as many as heads
  int64_t head_dim = 0;       // 0: hidden / heads
  int64_t ffn_hidden = 0;     // 0: 4 x hidden (gelu), 8/3 x hidden rounded up to 64 (gated)
  int64_t vocab = 0;          // 0: the tokenizer's
  int64_t max_positions = 0;  // rows of the learned position table; 0: the sequence length
  bool tied_head = true;      // the head reads the token embedding
  bool qk_norm = false;       // RMSNorm on every query and key head, as in Qwen3
  double norm_eps = 1e-5;
  RopeConfig rope;
  int64_t sliding_window = 0;  // tokens attention looks back on; only 0, the whole sequence, yet
  double init_std = 0.02;      // normal init; projections into the residual: / sqrt(2 layers)
  bool operator==(const ModelConfig&) const = default;
};

// Fills in the features and sizes that are left open and checks the shape. Raises Exit::usage with
// the key and the way out
// ("model.query_groups = 3 does not divide model.heads = 32." / "Use one of 1, 2, 4, ...").
ModelConfig resolve(ModelConfig);

struct Preset {
  std::string name;
  std::string summary;  // "Llama 3 8B: 32 layers, hidden 4096"
  ModelConfig config;
};
const std::vector<Preset>& presets();

// Raises Exit::usage naming the nearest preset.
const ModelConfig& preset(const std::string& name);

}  // namespace plimsoll::model
