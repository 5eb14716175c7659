// The shape of a transformer language model.
//
// Two families, whole: GPT-2 (LayerNorm, learned positions, biases, tanh-GELU, tied head) and Llama
// (RMSNorm, RoPE, SwiGLU, grouped queries, explicit head_dim, optional QK-norm as in Qwen3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::model {

enum class Family : uint8_t { gpt2, llama };

struct ModelConfig {
  std::string preset;  // name this shape started from; empty when given key by key
  Family family = Family::llama;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t query_groups = 0;   // key and value heads; 0: as many as heads
  int64_t head_dim = 0;       // 0: hidden / heads
  int64_t ffn_hidden = 0;     // 0: 4 x hidden (gpt2), 8/3 x hidden rounded up to 64 (llama)
  int64_t vocab = 0;          // 0: the tokenizer's
  int64_t max_positions = 0;  // rows of the learned position table (gpt2); 0: the sequence length
  bool tied_head = true;      // the head reads the token embedding
  bool qk_norm = false;       // RMSNorm on every query and key head (llama)
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  double init_std = 0.02;  // normal init; projections into the residual: / sqrt(2 layers)
};

// Fills in the derived sizes and checks the shape. Raises Exit::usage with the key and the way out
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
