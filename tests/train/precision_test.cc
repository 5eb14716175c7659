// What the recipes promise of a training step.
#include "plimsoll/step/passes/precision.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "plimsoll/base/names.h"
#include "tests/train/planned_under_test.h"
#include "tests/train/random_step.h"

namespace plimsoll::train {
namespace {

using step::Recipe;

// Every recipe that quantises.
std::vector<Recipe> every_recipe() {
  std::vector<Recipe> all = values_of<Recipe>();
  std::erase(all, Recipe::none);
  return all;
}
const std::vector<Recipe> all_recipes = every_recipe();

config::Config random_config() {
  config::Config config;
  config.model = random_model();
  config.step.sequence_length = *rc::gen::inRange<int64_t>(1, 60);
  config.step.micro_batch = *rc::gen::inRange<int64_t>(1, 3);
  config.step.global_batch = 2 * config.step.micro_batch;
  config.step.head_chunk = 64;
  config.step.ffn_chunk = *rc::gen::element<int64_t>(0, 32);
  config.recipe.name =
      *rc::gen::elementOf(std::vector<Recipe>(std::begin(all_recipes), std::end(all_recipes)));
  config.recipe.last_bf16 = 0;
  config.recipe.history = 4;
  config.recipe.cache_weights = *rc::gen::arbitrary<bool>();
  config.checkpoint.in_background = config::InBackground::no;
  return config;
}

// Gradients after two micro-steps, and masters after two optimizer steps of two micro-steps.
bool same_training(const PlannedUnderTest& a, const PlannedUnderTest& b) {
  a.setup();
  b.setup();
  a.micro_step(0);
  b.micro_step(0);
  if (!same_bits(a.floats(a.run.step.losses), b.floats(b.run.step.losses))) return false;
  for (size_t i = 0; i < a.run.step.parameters.size(); ++i) {
    const step::TensorId id_a = a.run.step.parameters[i].gradient;
    const step::TensorId id_b = b.run.step.parameters[i].gradient;
    if (!same_bits(a.floats(id_a), b.floats(id_b))) return false;
  }
  a.optimizer_step(1);
  b.optimizer_step(1);
  a.steps(2);
  b.steps(2);
  for (size_t i = 0; i < a.run.step.parameters.size(); ++i) {
    const step::TensorId id_a = a.run.step.parameters[i].master;
    const step::TensorId id_b = b.run.step.parameters[i].master;
    if (!same_bits(a.floats(id_a), b.floats(id_b))) return false;
  }
  return true;
}

RC_GTEST_PROP(Recipes, AreBitIdenticalUnderEveryCheckpointing, ()) {
  config::Config config = random_config();
  const PlannedUnderTest plain(config);
  config.step.checkpointing = *rc::gen::element<std::string>(
      "full", "layers:1", "selective:quantize", "selective:attention,quantized_mat_mul");
  const PlannedUnderTest checkpointed(config);
  step::validate(checkpointed.run.step.program);
  RC_ASSERT(!step::find_overlap(checkpointed.run.step.program, checkpointed.run.memory).found());
  RC_ASSERT(checkpointed.executor->allocated() == checkpointed.run.memory.arena);
  RC_ASSERT(same_training(plain, checkpointed));
}

RC_GTEST_PROP(Recipes, AreBitIdenticalHoweverWeightsAreKept, ()) {
  config::Config config = random_config();
  config.recipe.cache_weights = true;
  const PlannedUnderTest plain(config);
  config.recipe.cache_weights = *rc::gen::arbitrary<bool>();
  config.recipe.bf16_weights = !config.recipe.cache_weights;
  RC_ASSERT(same_training(plain, PlannedUnderTest(config)));
}

RC_GTEST_PROP(Recipes, DoNotDependOnTheNumberOfThreads, ()) {
  const config::Config config = random_config();
  RC_ASSERT(same_training(PlannedUnderTest(config, 1), PlannedUnderTest(config, 3)));
}

config::Config small(Recipe recipe) {
  config::Config config;
  config.model = {.family = model::Family::llama,
                  .layers = 2,
                  .hidden = 64,
                  .heads = 4,
                  .ffn_hidden = 160,
                  .vocab = 67,
                  .init_std = 0.1};
  config.step.sequence_length = 96;
  config.step.head_chunk = 64;
  config.recipe.name = recipe;
  config.recipe.last_bf16 = 0;
  config.checkpoint.in_background = config::InBackground::no;
  return config;
}

std::vector<float> gradients(const PlannedUnderTest& run) {
  std::vector<float> all;
  for (const step::ParameterTensors& p : run.run.step.parameters) {
    const auto gradient = run.floats(p.gradient);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// Section 5.3(4) of the numerics reference, for whole gradients of a small model.
TEST(Recipes, KeepTheDirectionOfTheGradient) {
  const PlannedUnderTest bf16(small(Recipe::none));
  bf16.setup();
  bf16.micro_step(1);
  const std::vector<float> exact = gradients(bf16);
  const std::map<Recipe, double> least = {{Recipe::fp16, 0.9999},      {Recipe::fp8_delayed, 0.99},
                                          {Recipe::fp8_current, 0.99}, {Recipe::fp8_block, 0.99},
                                          {Recipe::mxfp8, 0.99},       {Recipe::nvfp4, 0.85}};
  for (const auto& [recipe, cosine_at_least] : least) {
    const PlannedUnderTest run(small(recipe));
    run.setup();
    run.micro_step(1);
    const double found = cosine(exact, gradients(run));
    EXPECT_GT(found, cosine_at_least) << static_cast<int>(recipe);
    EXPECT_LT(found, 0.9999999) << "quantisation is not active";
  }
}

// The output of the recipe, not a dequantised copy, is what masters are made from.
TEST(Recipes, StartFromTheSameMasters) {
  const PlannedUnderTest bf16(small(Recipe::none)), mx(small(Recipe::mxfp8));
  bf16.setup();
  mx.setup();
  for (size_t i = 0; i < bf16.run.step.parameters.size(); ++i) {
    EXPECT_TRUE(same_bits(bf16.floats(bf16.run.step.parameters[i].master),
                          mx.floats(mx.run.step.parameters[i].master)));
  }
}

TEST(Recipes, QuantiseWeightsAgainAfterEveryOptimizerStep) {
  const PlannedUnderTest run(small(Recipe::mxfp8));
  run.setup();
  for (const char* copy_name :
       {"layers.0.mlp.down.weight.rows", "layers.0.mlp.down.weight.columns"}) {
    const std::vector<step::Tensor>& tensors = run.run.step.program.tensors;
    const auto found = std::ranges::find(tensors, copy_name, &step::Tensor::name);
    ASSERT_NE(found, tensors.end());
    const auto codes = static_cast<step::TensorId>(found - tensors.begin());
    const auto copy = [&] {
      std::vector<std::byte> codes_now(
          static_cast<size_t>(bytes(run.run.step.program.tensor(codes)).count));
      run.executor->read(codes, codes_now);
      return codes_now;
    };
    auto before = copy();
    for (int i = 1; i <= 3; ++i) {
      run.micro_step(i);
      EXPECT_EQ(copy(), before);
      run.optimizer_step(i);
      EXPECT_NE(copy(), before);
      before = copy();
    }
  }
}

TEST(Recipes, AnEvaluationLeavesDelayedScalingAsItIs) {
  const PlannedUnderTest run(small(Recipe::fp8_delayed));
  run.setup();
  run.steps(2);
  std::vector<float> before;
  const auto states = [&] {
    std::vector<float> all;
    for (const step::QuantizerInfo& info : run.run.step.quantizers.list) {
      const auto state = run.floats(info.state);
      all.insert(all.end(), state.begin(), state.end());
    }
    return all;
  };
  before = states();
  run.control()->observe = 0;
  run.executor->run(step::Phase::forward);
  EXPECT_EQ(states(), before);
  run.control()->observe = 1;
  run.micro_step(9);
  EXPECT_NE(states(), before);
}

TEST(Recipes, NameTheMatrixThatHoldsNaN) {
  for (const Recipe recipe : {Recipe::mxfp8, Recipe::nvfp4, Recipe::fp8_current}) {
    const PlannedUnderTest run(small(recipe));
    for (const step::ParameterTensors& p : run.run.step.parameters) {
      if (p.parameter.name == "layers.1.mlp.down.weight") run.floats(p.master)[5] = NAN;
    }
    run.setup();
    std::set<std::string> affected;
    for (size_t i = 0; i < run.run.step.quantizers.list.size(); ++i) {
      if (run.statistics()[i].not_finite > 0) {
        affected.insert(run.run.step.quantizers.list[i].name);
      }
    }
    EXPECT_EQ(affected, (std::set<std::string>{"layers.1.mlp.down.weight"}));
  }
}

TEST(Recipes, KeepOnlyTheCopyOfAnInputAlongTheTokensForTheBackward) {
  const PlannedUnderTest run(small(Recipe::mxfp8));
  std::set<std::string> saved;
  for (const step::TensorId id : step::saved_tensors(run.run.step.program)) {
    const step::Tensor& tensor = run.run.step.program.tensor(id);
    if (tensor.layer == 0) saved.insert(tensor.name);
  }
  int rows = 0, columns = 0;
  for (const std::string& name : saved) {
    rows += name.find(".rows") != std::string::npos;
    columns += name.ends_with(".columns");
  }
  EXPECT_EQ(rows, 0);
  EXPECT_EQ(columns, 4);  // of the inputs of the four linear layers
  EXPECT_FALSE(saved.contains("layers.0.mlp.swiglu.out"));
  EXPECT_FALSE(saved.contains("layers.0.mlp_norm.out"));
  EXPECT_TRUE(saved.contains("layers.0.mlp.gate_up.out"));
}

TEST(Recipes, LeaveTheLayersThatAreAskedForInBf16) {
  config::Config config = small(Recipe::mxfp8);
  config.recipe.bf16_layers = "*.attention.*, layers.0.mlp.down.weight";
  const PlannedUnderTest some(config);
  std::set<std::string> names;
  for (const step::QuantizerInfo& info : some.run.step.quantizers.list) names.insert(info.name);
  EXPECT_TRUE(names.contains("layers.1.mlp.down.input"));
  EXPECT_FALSE(names.contains("layers.0.mlp.down.input"));
  EXPECT_FALSE(names.contains("layers.1.attention.qkv.input"));
  config.recipe.bf16_layers = "";
  config.recipe.last_bf16 = 1;
  const PlannedUnderTest first(config);
  for (const step::QuantizerInfo& info : first.run.step.quantizers.list) EXPECT_EQ(info.layer, 0);
}

TEST(Recipes, ChooseTheDefaultsOfTheirPublications) {
  EXPECT_EQ(step::last_bf16_layers({.name = Recipe::nvfp4}, 12), 2);
  EXPECT_EQ(step::last_bf16_layers({.name = Recipe::mxfp8}, 12), 0);
  const auto current = step::quantization_of({.name = Recipe::fp8_current});
  EXPECT_EQ(current.gradient.format, Format::e5m2);
  EXPECT_EQ(current.input.format, Format::e4m3);
  const auto mx = step::quantization_of({.name = Recipe::mxfp8});
  EXPECT_EQ(mx.gradient.format, Format::e4m3);
  const auto fp4 = step::quantization_of({.name = Recipe::nvfp4});
  EXPECT_EQ(fp4.weight.scaling, Scaling::nvfp4_16x16);
  EXPECT_TRUE(fp4.gradient.stochastic && fp4.gradient_columns.stochastic);
  EXPECT_TRUE(fp4.input_columns.hadamard && fp4.gradient_columns.hadamard);
  EXPECT_FALSE(fp4.input.hadamard || fp4.gradient.hadamard || fp4.weight_columns.hadamard);
}

TEST(Patterns, MatchNamesWithStars) {
  EXPECT_TRUE(step::matches("*.qkv.weight", "layers.3.attention.qkv.weight"));
  EXPECT_TRUE(step::matches("a, layers.3.*", "layers.3.attention.qkv.weight"));
  EXPECT_FALSE(step::matches("layers.3.*", "layers.31.attention.qkv.weight"));
  EXPECT_FALSE(step::matches("", "layers.3"));
  EXPECT_TRUE(step::matches("*a*a*", "banana"));
  EXPECT_FALSE(step::matches("*a*n*b", "banana"));
  std::string stars;  // answered at once, not after 2^40 tries
  for (int i = 0; i < 40; ++i) stars += "*a";
  EXPECT_FALSE(step::matches(stars + "*b", std::string(200, 'a')));
}

}  // namespace
}  // namespace plimsoll::train
