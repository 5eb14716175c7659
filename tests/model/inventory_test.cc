#include "plimsoll/model/inventory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace plimsoll::model {
namespace {

ModelConfig small(Family family) {
  ModelConfig config;
  config.family = family;
  config.layers = 2;
  config.hidden = 8;
  config.heads = 2;
  config.ffn_hidden = 20;
  config.vocab = 11;
  config.max_positions = family == Family::gpt2 ? 16 : 0;
  return config;
}

// "name rows x columns @layer" of each parameter.
std::vector<std::string> listing(const ModelConfig& config) {
  std::vector<std::string> lines;
  for (const Parameter& p : inventory(resolve(config))) {
    lines.push_back(p.name + " " + std::to_string(p.rows) + "x" + std::to_string(p.columns) + " @" +
                    std::to_string(p.layer));
  }
  return lines;
}

TEST(Inventory, OfGpt2IsInTheOrderOfTheForward) {
  ModelConfig config = small(Family::gpt2);
  config.layers = 1;
  EXPECT_EQ(listing(config), (std::vector<std::string>{
                                 "embedding.tokens 11x8 @-1",
                                 "embedding.positions 16x8 @-1",
                                 "layers.0.attention_norm.weight 1x8 @0",
                                 "layers.0.attention_norm.bias 1x8 @0",
                                 "layers.0.attention.qkv.weight 24x8 @0",
                                 "layers.0.attention.qkv.bias 1x24 @0",
                                 "layers.0.attention.output.weight 8x8 @0",
                                 "layers.0.attention.output.bias 1x8 @0",
                                 "layers.0.mlp_norm.weight 1x8 @0",
                                 "layers.0.mlp_norm.bias 1x8 @0",
                                 "layers.0.mlp.up.weight 20x8 @0",
                                 "layers.0.mlp.up.bias 1x20 @0",
                                 "layers.0.mlp.down.weight 8x20 @0",
                                 "layers.0.mlp.down.bias 1x8 @0",
                                 "final_norm.weight 1x8 @-1",
                                 "final_norm.bias 1x8 @-1",
                             }));
}

TEST(Inventory, OfLlamaIsInTheOrderOfTheForward) {
  ModelConfig config = small(Family::llama);
  config.layers = 1;
  config.query_groups = 1;
  config.head_dim = 6;
  config.qk_norm = true;
  config.tied_head = false;
  EXPECT_EQ(listing(config), (std::vector<std::string>{
                                 "embedding.tokens 11x8 @-1",
                                 "layers.0.attention_norm.weight 1x8 @0",
                                 "layers.0.attention.qkv.weight 24x8 @0",
                                 "layers.0.attention.q_norm.weight 1x6 @0",
                                 "layers.0.attention.k_norm.weight 1x6 @0",
                                 "layers.0.attention.output.weight 8x12 @0",
                                 "layers.0.mlp_norm.weight 1x8 @0",
                                 "layers.0.mlp.gate_up.weight 40x8 @0",
                                 "layers.0.mlp.down.weight 8x20 @0",
                                 "final_norm.weight 1x8 @-1",
                                 "head.weight 11x8 @-1",
                             }));
}

TEST(Inventory, EveryLayerHasTheSameParametersUnderItsOwnNames) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    std::set<std::string> names;
    std::vector<int> per_layer(2);
    for (const Parameter& p : inventory(resolve(small(family)))) {
      EXPECT_TRUE(names.insert(p.name).second) << p.name << " is there twice";
      if (p.layer < 0) continue;
      ++per_layer.at(static_cast<size_t>(p.layer));
      EXPECT_TRUE(p.name.starts_with("layers." + std::to_string(p.layer) + ".")) << p.name;
    }
    EXPECT_EQ(per_layer[0], per_layer[1]);
  }
}

TEST(Inventory, InitialisesNormsToOneBiasesToZeroAndScalesResidualProjections) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    ModelConfig config = small(family);
    config.qk_norm = family == Family::llama;
    config.init_std = 0.03;
    for (const Parameter& p : inventory(resolve(config))) {
      const bool residual =
          p.name.ends_with("attention.output.weight") || p.name.ends_with("mlp.down.weight");
      if (p.name.ends_with(".bias")) {
        EXPECT_EQ(p.init, Init::zeros) << p.name;
      } else if (p.name.ends_with("norm.weight")) {
        EXPECT_EQ(p.init, Init::ones) << p.name;
      } else {
        EXPECT_EQ(p.init, Init::normal) << p.name;
        EXPECT_TRUE(p.matrix) << p.name;
        EXPECT_DOUBLE_EQ(p.std, residual ? 0.03 / std::sqrt(4.0) : 0.03) << p.name;
      }
    }
  }
}

TEST(Inventory, HasTheBiasesThatAreAskedFor) {
  ModelConfig config = small(Family::llama);
  config.qkv_bias = true;
  const auto biases = [&] {
    std::string names;
    for (const Parameter& p : inventory(resolve(config))) {
      if (p.layer == 0 && p.name.ends_with(".bias")) names += " " + p.name.substr(9);
    }
    return names;
  };
  EXPECT_EQ(biases(), " attention.qkv.bias");
  config.qkv_bias = false;
  config.mlp_bias = true;
  EXPECT_EQ(biases(), " mlp.gate_up.bias mlp.down.bias");
  config.output_bias = true;
  config.norm = Norm::layer;
  EXPECT_EQ(biases(),
            " attention_norm.bias attention.output.bias mlp_norm.bias mlp.gate_up.bias "
            "mlp.down.bias");
}

TEST(Inventory, CountsEveryElementOnce) {
  // 11*8 + 16*8 + 2*(2*8 + 24*8+24 + 8*8+8 + 2*8 + 20*8+20 + 8*20+8) + 2*8
  EXPECT_EQ(parameter_count(resolve(small(Family::gpt2))), 88 + 128 + 2 * 668 + 16);
}

}  // namespace
}  // namespace plimsoll::model
