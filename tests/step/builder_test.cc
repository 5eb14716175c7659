#include "plimsoll/step/builder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/step/memory_plan.h"
#include "tests/model/random_features.h"

namespace plimsoll::step {
namespace {

model::ModelConfig random_model() {
  model::ModelConfig model;
  model.layers = *rc::gen::inRange<int64_t>(1, 5);
  model.heads = *rc::gen::element<int64_t>(1, 2, 4, 6);
  model.head_dim = 2 * *rc::gen::inRange<int64_t>(1, 9);
  model.hidden = model.heads * model.head_dim;
  model.ffn_hidden = *rc::gen::inRange<int64_t>(1, 70);
  model.vocab = *rc::gen::inRange<int64_t>(2, 300);
  model.max_positions = 64;
  model::draw_features(model);
  if (*rc::gen::arbitrary<bool>()) model.head_dim += 2;  // not hidden / heads
  return model::resolve(model);
}

StepConfig random_step() {
  StepConfig step;
  step.precision = *rc::gen::element(Precision::fp32, Precision::bf16);
  step.micro_batch = *rc::gen::inRange<int64_t>(1, 4);
  step.global_batch = step.micro_batch * *rc::gen::inRange<int64_t>(1, 4);
  step.sequence_length = *rc::gen::inRange<int64_t>(1, 40);
  step.head_chunk = *rc::gen::inRange<int64_t>(1, 64);
  return step;
}

RC_GTEST_PROP(Builder, MakesValidProgramsOfAnyShape, ()) {
  const TrainingStep step = build_training_step(random_model(), random_step(), {});
  validate(step.program);
  const MemoryPlan plan = plan_memory(step.program);
  RC_ASSERT(!find_overlap(step.program, plan).found());
}

RC_GTEST_PROP(Builder, GivesEveryParameterAGradientThatTheBackwardWritesAndTheOptimizerReads, ()) {
  const TrainingStep step = build_training_step(random_model(), random_step(), {});
  for (const ParameterTensors& p : step.parameters) {
    const auto touches = [&](Phase phase, bool output) {
      for (const Op& op : step.program.ops) {
        if (op.phase != phase) continue;
        for (const Operand& operand : output ? op.outputs : op.inputs) {
          if (operand.tensor == p.gradient) return true;
        }
      }
      return false;
    };
    RC_ASSERT(touches(Phase::backward, true));
    RC_ASSERT(touches(Phase::optimizer, false));
  }
}

// Megatron-LM counts 6 FLOPs a weight of the products and token, plus attention's two products of
// sequence x sequence, halved here by the causal mask.
TEST(Builder, CountsTheFlopsOfTheTextbook) {
  const model::ModelConfig model = model::resolve(model::preset("llama-3-8b"));
  StepConfig config = {
      .micro_batch = 1, .global_batch = 1, .sequence_length = 1024, .head_chunk = 256};
  const TrainingStep step = build_training_step(model, config, {});
  const double products = static_cast<double>(model::parameter_count(model)) -
                          static_cast<double>(model.vocab * model.hidden);  // the lookup
  const double attention =
      2.0 * 2 * model.layers * model.heads * model.head_dim * (config.sequence_length + 1) / 2.0;
  const double forward = flops(step.program, Phase::forward).count / 1024;
  EXPECT_NEAR(forward / (2 * products + attention), 1.0, 0.002);
  // The head's gradients and the weight and input gradients make twice the forward; attention's
  // backward is 5/2 of its forward.
  const double backward = flops(step.program, Phase::backward).count / 1024;
  EXPECT_NEAR(backward / (4 * products + 2.5 * attention), 1.0, 0.002);
}

TEST(Builder, HoldsLogitsOfOneChunkOnly) {
  const model::ModelConfig model = model::resolve(model::preset("gpt2-124m"));
  const StepConfig config = {
      .micro_batch = 4, .global_batch = 4, .sequence_length = 256, .head_chunk = 128};
  const TrainingStep step = build_training_step(model, config, {});
  for (const Tensor& tensor : step.program.tensors) {
    if (tensor.role == Role::param || tensor.role == Role::grad || tensor.role == Role::optimizer) {
      continue;
    }
    EXPECT_LE(tensor.type.shape.elements(), 128 * model.vocab) << tensor.name;
    EXPECT_FALSE(tensor.type.shape.rows == 256 && tensor.type.shape.columns == 256) << tensor.name;
  }
}

// docs/memory.md: bytes a layer saves for the backward, of the published accounting.
TEST(Builder, SavesWhatTheAccountingSays) {
  const model::ModelConfig model = model::resolve(model::preset("llama-3-8b"));
  const StepConfig config = {
      .micro_batch = 1, .global_batch = 1, .sequence_length = 8192, .head_chunk = 256};
  const TrainingStep step = build_training_step(model, config, {});
  Bytes saved;
  for (const Tensor& tensor : step.program.tensors) {
    if (tensor.role == Role::saved && tensor.layer == 5) saved += bytes(tensor);
  }
  // 34.03 x tokens x hidden: 1089 MiB a layer (two bytes an element, RMSNorm statistics included).
  EXPECT_NEAR(static_cast<double>(saved.count) / (8192.0 * 4096), 34.03, 0.05);
}

TEST(Builder, PacksEveryPresetWithinTwoPercentOfTheLowerBound) {
  for (const model::Preset& preset : model::presets()) {
    model::ModelConfig model = preset.config;
    if (model.vocab == 0) model.vocab = 264;
    if (model.max_positions == 0) model.max_positions = 1024;
    const StepConfig config = {
        .micro_batch = 2, .global_batch = 2, .sequence_length = 1024, .head_chunk = 128};
    const TrainingStep step = build_training_step(model::resolve(model), config, {});
    EXPECT_LE(plan_memory(step.program).packing(), 1.02) << preset.name;
  }
}

}  // namespace
}  // namespace plimsoll::step
