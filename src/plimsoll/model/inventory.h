// Every parameter of a model: its name, shape, initialisation and whether weight decay applies.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/model/model_config.h"

namespace plimsoll::model {

enum class Init : uint8_t { zeros, ones, normal };

struct Parameter {
  std::string name;     // "layers.3.attention.qkv.weight"
  int64_t rows = 1;     // outputs of a linear layer, vocabulary, positions; 1 for vectors
  int64_t columns = 1;  // inputs of a linear layer, hidden, length of a vector
  int layer = -1;       // -1: outside the layers
  Init init = Init::normal;
  double std = 0.02;   // of Init::normal
  bool matrix = true;  // weight decay and the compute format are for these, even of one row
  int64_t elements() const { return rows * columns; }
};

// In the order of the forward. Names:
//   embedding.tokens, embedding.positions          learned positions
//   layers.N.attention_norm.{weight,bias}          bias: LayerNorm
//   layers.N.attention.qkv.{weight,bias}           rows: query heads, key heads, value heads
//   layers.N.attention.{q_norm,k_norm}.weight      qk_norm
//   layers.N.attention.output.{weight,bias}
//   layers.N.mlp_norm.{weight,bias}
//   layers.N.mlp.up.{weight,bias}                  gelu
//   layers.N.mlp.gate_up.{weight,bias}             gated; rows: gate, then up
//   layers.N.mlp.down.{weight,bias}
//   final_norm.{weight,bias}
//   head.weight                                    untied head
std::vector<Parameter> inventory(const ModelConfig& resolved);

int64_t parameter_count(const ModelConfig& resolved);

}  // namespace plimsoll::model
