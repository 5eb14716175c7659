// The promise that a run repeats bit for bit on any number of threads, kept by whole steps.
#include <gtest/gtest.h>

#include "tests/runtime/kernels/each_target.h"
#include "tests/train/planned_under_test.h"

namespace plimsoll::train {
namespace {

// Sizes that end no tile, FFN chunks of which the last is short.
config::Config awkward(model::Family family, step::Precision precision) {
  config::Config config;
  config.model = {.family = family,
                  .layers = 2,
                  .hidden = 48,
                  .heads = 3,
                  .ffn_hidden = 80,
                  .vocab = 67,
                  .max_positions = 512};
  config.step.precision = precision;
  config.step.sequence_length = 288;
  config.step.micro_batch = 1;
  config.step.global_batch = 2;
  config.step.head_chunk = 128;
  config.step.ffn_chunk = 256;
  config.recipe.last_bf16 = 0;
  config.checkpoint.in_background = config::InBackground::no;
  return config;
}

// Masters after an optimizer step of two micro-steps.
std::vector<float> trained(const config::Config& config, int threads, cpu::Bf16Kernel kernel) {
  const PlannedUnderTest run(config, threads, kernel);
  run.setup();
  run.steps(1);
  std::vector<float> all;
  for (const step::ParameterTensors& parameter : run.run.step.parameters) {
    const auto values = run.floats(parameter.master);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void expect_same_for_any_threads(const config::Config& config, const std::string& what) {
  for (const cpu::Bf16Kernel kernel : cpu::bf16_kernels()) {
    const std::vector<float> one = trained(config, 1, kernel);
    for (const int threads : {2, 3, 5, 8}) {
      EXPECT_TRUE(same_bits(one, trained(config, threads, kernel)))
          << what << ", " << threads << " threads, products: " << name(kernel);
    }
  }
}

TEST(Threads, ChangeNoBitOfAStep) {
  for (const model::Family family : {model::Family::llama, model::Family::gpt2}) {
    for (const step::Precision precision : {step::Precision::fp32, step::Precision::bf16}) {
      expect_same_for_any_threads(awkward(family, precision),
                                  precision == step::Precision::fp32 ? "fp32" : "bf16");
    }
  }
}

TEST(Threads, ChangeNoBitOnAnyInstructionSet) {
  cpu::for_each_target([](const char* target) {
    for (const step::Precision precision : {step::Precision::fp32, step::Precision::bf16}) {
      const config::Config config = awkward(model::Family::llama, precision);
      const cpu::Bf16Kernel portable = cpu::Bf16Kernel::portable;
      EXPECT_TRUE(same_bits(trained(config, 1, portable), trained(config, 3, portable))) << target;
    }
  });
}

TEST(Threads, ChangeNoBitOfARecipe) {
  for (const step::Recipe recipe :
       {step::Recipe::fp16, step::Recipe::fp8_delayed, step::Recipe::fp8_current,
        step::Recipe::fp8_block, step::Recipe::mxfp8, step::Recipe::nvfp4}) {
    config::Config config = awkward(model::Family::llama, step::Precision::bf16);
    config.recipe.name = recipe;
    config.recipe.history = 4;
    expect_same_for_any_threads(config, "recipe " + std::to_string(static_cast<int>(recipe)));
  }
}

}  // namespace
}  // namespace plimsoll::train
