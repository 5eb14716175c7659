#include "plimsoll/model/inventory.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::model {

namespace {

Parameter matrix(std::string name, int64_t rows, int64_t columns, int layer, double std) {
  return {std::move(name), rows, columns, layer, Init::normal, std, true};
}

Parameter vector(std::string name, int64_t length, int layer, Init init) {
  return {std::move(name), 1, length, layer, init, 0, false};
}

struct Builder {
  const ModelConfig& config;
  std::vector<Parameter>& out;

  void norm(const std::string& name, int layer) {
    out.push_back(vector(name + ".weight", config.hidden, layer, Init::ones));
    if (config.norm == Norm::layer) bias(name, config.hidden, layer);
  }
  void linear(const std::string& name, int64_t outputs, int64_t inputs, bool has_bias, int layer,
              double std) {
    out.push_back(matrix(name + ".weight", outputs, inputs, layer, std));
    if (has_bias) bias(name, outputs, layer);
  }
  void bias(const std::string& name, int64_t length, int layer) {
    out.push_back(vector(name + ".bias", length, layer, Init::zeros));
  }
};

void add_layer(Builder& add, int layer) {
  const ModelConfig& c = add.config;
  const std::string prefix = fmt::format("layers.{}.", layer);
  const int64_t query_rows = c.heads * c.head_dim;
  const int64_t group_rows = c.query_groups * c.head_dim;
  // Radford et al. 2019, section 2.3: each layer adds two projections into the residual stream.
  const double residual_std = c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers));

  add.norm(prefix + "attention_norm", layer);
  add.linear(prefix + "attention.qkv", query_rows + 2 * group_rows, c.hidden, *c.qkv_bias, layer,
             c.init_std);
  if (c.qk_norm) {
    for (const char* name : {"attention.q_norm.weight", "attention.k_norm.weight"}) {
      add.out.push_back(vector(prefix + name, c.head_dim, layer, Init::ones));
    }
  }
  add.linear(prefix + "attention.output", c.hidden, query_rows, *c.output_bias, layer,
             residual_std);
  add.norm(prefix + "mlp_norm", layer);
  if (is_gated(*c.activation)) {
    add.linear(prefix + "mlp.gate_up", 2 * c.ffn_hidden, c.hidden, *c.mlp_bias, layer, c.init_std);
  } else {
    add.linear(prefix + "mlp.up", c.ffn_hidden, c.hidden, *c.mlp_bias, layer, c.init_std);
  }
  add.linear(prefix + "mlp.down", c.hidden, c.ffn_hidden, *c.mlp_bias, layer, residual_std);
}

}  // namespace

std::vector<Parameter> inventory(const ModelConfig& resolved) {
  const ModelConfig& c = resolved;
  std::vector<Parameter> all;
  Builder add{c, all};
  all.push_back(matrix("embedding.tokens", c.vocab, c.hidden, -1, c.init_std));
  if (c.positions == Positions::learned) {
    all.push_back(matrix("embedding.positions", c.max_positions, c.hidden, -1, c.init_std));
  }
  for (int layer = 0; layer < c.layers; ++layer) add_layer(add, layer);
  add.norm("final_norm", -1);
  if (!c.tied_head) all.push_back(matrix("head.weight", c.vocab, c.hidden, -1, c.init_std));
  return all;
}

int64_t parameter_count(const ModelConfig& resolved) {
  int64_t count = 0;
  for (const Parameter& parameter : inventory(resolved)) count += parameter.elements();
  return count;
}

}  // namespace plimsoll::model
