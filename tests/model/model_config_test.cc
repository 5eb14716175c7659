#include "plimsoll/model/model_config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/base/error.h"
#include "tests/model/random_features.h"

namespace plimsoll::model {
namespace {

ModelConfig llama() {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 384;
  config.heads = 6;
  config.vocab = 264;
  return config;
}

ModelConfig gpt2() {
  ModelConfig config = llama();
  config.family = Family::gpt2;
  config.max_positions = 128;
  return config;
}

void expect_refused(const ModelConfig& config, const std::string& message) {
  try {
    resolve(config);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_EQ(error.message(), message);
  }
}

TEST(ModelConfig, FillsInTheDerivedSizesOfEachFamily) {
  const ModelConfig l = resolve(llama());
  EXPECT_EQ(l.query_groups, 6);
  EXPECT_EQ(l.head_dim, 64);
  EXPECT_EQ(l.ffn_hidden, 1024);
  const ModelConfig g = resolve(gpt2());
  EXPECT_EQ(g.query_groups, 6);
  EXPECT_EQ(g.head_dim, 64);
  EXPECT_EQ(g.ffn_hidden, 1536);
}

RC_GTEST_PROP(ModelConfig, LlamaFfnIsTheNextMultipleOf64FromEightThirdsOfHidden, ()) {
  ModelConfig config = llama();
  config.heads = 1;
  config.hidden = 2 * *rc::gen::inRange<int64_t>(1, 10000);
  const int64_t ffn = resolve(config).ffn_hidden;
  RC_ASSERT(ffn % 64 == 0);
  RC_ASSERT(3 * ffn >= 8 * config.hidden);
  RC_ASSERT(3 * (ffn - 64) < 8 * config.hidden);
}

TEST(ModelConfig, KeepsWhatIsGiven) {
  ModelConfig config = llama();
  config.query_groups = 3;
  config.head_dim = 32;
  config.ffn_hidden = 100;
  config.tied_head = false;
  config.qk_norm = true;
  const ModelConfig same = resolve(config);
  EXPECT_EQ(same.query_groups, 3);
  EXPECT_EQ(same.head_dim, 32);
  EXPECT_EQ(same.ffn_hidden, 100);
  EXPECT_FALSE(same.tied_head);
  EXPECT_TRUE(same.qk_norm);
}

TEST(ModelConfig, ResolvingTwiceChangesNothing) {
  for (const Preset& preset : presets()) {
    ModelConfig config = preset.config;
    if (config.vocab == 0) config.vocab = 264;
    const ModelConfig once = resolve(config);
    const ModelConfig twice = resolve(once);
    EXPECT_TRUE(once == twice) << preset.name;
  }
}

TEST(ModelConfig, QueryGroupsMustDivideHeadsAndTheAdviceListsTheDivisors) {
  ModelConfig config = llama();
  config.heads = 32;
  config.hidden = 1024;
  config.query_groups = 3;
  expect_refused(config,
                 "model.query_groups = 3 does not divide model.heads = 32.\n"
                 "  Use one of 1, 2, 4, 8, 16, 32.");
}

TEST(ModelConfig, HeadsMustDivideHiddenUnlessHeadDimIsGiven) {
  ModelConfig config = llama();
  config.hidden = 28;
  config.heads = 5;
  expect_refused(config,
                 "model.heads = 5 does not divide model.hidden = 28.\n"
                 "  Use one of 1, 2, 4, 7, 14, 28, or give model.head_dim.");
  config.head_dim = 16;
  EXPECT_EQ(resolve(config).head_dim, 16);
}

TEST(ModelConfig, RotaryPositionsNeedAnEvenHeadDim) {
  ModelConfig config = llama();
  config.head_dim = 33;
  expect_refused(config,
                 "model.head_dim = 33 is odd: rotary positions rotate pairs.\n"
                 "  Use an even model.head_dim, for example 34.");
  config.family = Family::gpt2;
  config.max_positions = 8;
  EXPECT_EQ(resolve(config).head_dim, 33) << "GPT-2 has no rotary positions";
}

TEST(ModelConfig, SizesMustBePositive) {
  const std::string shape = "Name a model.preset, or give model.layers, hidden and heads.";
  expect_refused({}, "model.layers = 0 is not positive.\n  " + shape);
  ModelConfig config = llama();
  config.hidden = -384;
  expect_refused(config, "model.hidden = -384 is not positive.\n  " + shape);
  config = llama();
  config.vocab = 0;
  expect_refused(config,
                 "model.vocab = 0 is not positive.\n"
                 "  Give the vocabulary size of the tokenizer.");
  config = gpt2();
  config.max_positions = 0;
  expect_refused(config,
                 "model.max_positions = 0 is not positive.\n"
                 "  Give the rows of the learned position table (1024 in GPT-2).");
}

TEST(ModelConfig, TheFamilySetsOnlyTheFeaturesThatAreLeftOpen) {
  const ModelConfig g = resolve(gpt2());
  EXPECT_EQ(g.norm, Norm::layer);
  EXPECT_EQ(g.positions, Positions::learned);
  EXPECT_EQ(g.activation, Activation::gelu);
  EXPECT_EQ(g.qkv_bias, true);
  EXPECT_EQ(g.output_bias, true);
  EXPECT_EQ(g.mlp_bias, true);

  ModelConfig mixed = gpt2();
  mixed.activation = Activation::swiglu;
  mixed.qkv_bias = false;
  mixed.query_groups = 2;
  mixed.tied_head = false;
  mixed.qk_norm = true;
  mixed = resolve(mixed);
  EXPECT_EQ(mixed.norm, Norm::layer);
  EXPECT_EQ(mixed.activation, Activation::swiglu);
  EXPECT_EQ(mixed.qkv_bias, false);
  EXPECT_EQ(mixed.mlp_bias, true);
  EXPECT_EQ(mixed.ffn_hidden, 1024) << "the width follows the activation";
}

RC_GTEST_PROP(ModelConfig, AnyCombinationOfFeaturesResolvesToExplicitOnes, ()) {
  ModelConfig config = llama();
  config.max_positions = 32;
  draw_features(config);
  const ModelConfig once = resolve(config);
  RC_ASSERT(once.norm && once.positions && once.activation);
  RC_ASSERT(once.qkv_bias && once.output_bias && once.mlp_bias);
  RC_ASSERT(resolve(once) == once);
  ModelConfig other_family = once;  // nothing is left for the family to say
  other_family.family = once.family == Family::gpt2 ? Family::llama : Family::gpt2;
  other_family = resolve(other_family);
  other_family.family = once.family;
  RC_ASSERT(other_family == once);
}

TEST(ModelConfig, ASlidingWindowIsRefusedByName) {
  ModelConfig config = llama();
  config.sliding_window = 4096;
  expect_refused(config,
                 "model.sliding_window = 4096: attention has no window yet, it sees the whole "
                 "sequence.\n"
                 "  Leave it out: up to step.sequence_length = 4096 it changes nothing.");
}

TEST(ModelConfig, RopeScalingIsCheckedWherePositionsAreRotary) {
  ModelConfig config = llama();
  config.rope.factor = 8;
  EXPECT_THROW(resolve(config), Error);
  config.positions = Positions::learned;
  config.max_positions = 16;
  EXPECT_NO_THROW(resolve(config));
}

}  // namespace
}  // namespace plimsoll::model
