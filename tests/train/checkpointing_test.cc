// Activation checkpointing changes memory and time, never a bit of the result.
#include "plimsoll/step/passes/checkpoint.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "plimsoll/train/initialize.h"
#include "tests/train/step_under_test.h"

namespace plimsoll::train {
namespace {

model::ModelConfig random_model() {
  model::ModelConfig model;
  model.family = *rc::gen::element(model::Family::gpt2, model::Family::llama);
  model.layers = *rc::gen::inRange<int64_t>(1, 4);
  model.heads = *rc::gen::element<int64_t>(1, 2, 4);
  model.head_dim = 2 * *rc::gen::inRange<int64_t>(1, 9);
  model.hidden = model.heads * model.head_dim;
  model.ffn_hidden = *rc::gen::inRange<int64_t>(1, 64);
  model.vocab = 67;
  model.max_positions = 64;
  model.query_groups = model.heads;
  model.init_std = 0.2;
  if (model.family == model::Family::llama) {
    model.query_groups = *rc::gen::element<int64_t>(1, model.heads);
    model.qk_norm = *rc::gen::arbitrary<bool>();
    model.tied_head = *rc::gen::arbitrary<bool>();
  }
  return model::resolve(model);
}

// Two micro-steps, so that gradients accumulate.
void run_micro_steps(const StepUnderTest& run) {
  for (const step::ParameterTensors& p : run.step.parameters) {
    initialize(p.parameter, 3, run.floats(p.master));
  }
  run.executor->run(step::Phase::setup);
  for (int32_t micro = 0; micro < 2; ++micro) {
    for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
      int32_t next = micro + id;
      for (int32_t& token : run.ids(id)) token = next = (next * 31 + 7) % 67;
    }
    run.executor->run_micro_step();
  }
}

RC_GTEST_PROP(Checkpointing, LeavesEveryLossAndGradientBitIdentical, ()) {
  const model::ModelConfig model = random_model();
  const step::StepConfig config = {
      .precision = *rc::gen::element(step::Precision::fp32, step::Precision::bf16),
      .micro_batch = *rc::gen::inRange<int64_t>(1, 3),
      .global_batch = 4,
      .sequence_length = *rc::gen::inRange<int64_t>(1, 40),
      .head_chunk = *rc::gen::inRange<int64_t>(1, 64)};
  const StepUnderTest plain(model, config, {});
  step::TensorSet dropped;
  for (const step::TensorId id : step::saved_tensors(plain.step.program)) {
    if (*rc::gen::arbitrary<bool>()) dropped.insert(id);
  }
  const StepUnderTest checkpointed(model, config, {}, 2, [&](step::Program program) {
    return step::checkpoint(std::move(program), dropped);
  });
  validate(checkpointed.step.program);
  RC_ASSERT(!step::find_overlap(checkpointed.step.program, checkpointed.plan).found());
  RC_ASSERT(checkpointed.arena->size() == checkpointed.plan.arena);
  run_micro_steps(plain);
  run_micro_steps(checkpointed);
  const auto same = [&](step::TensorId id) {
    const auto a = plain.floats(id), b = checkpointed.floats(id);
    return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  };
  RC_ASSERT(same(plain.step.losses));
  for (const step::ParameterTensors& p : plain.step.parameters) {
    if (!same(p.gradient)) RC_FAIL("the gradient of " + p.parameter.name + " differs");
  }
}

TEST(Checkpointing, OfEverythingSavesMemory) {
  const model::ModelConfig model =
      model::resolve({.layers = 6, .hidden = 64, .heads = 4, .vocab = 64});
  const step::StepConfig config = {
      .micro_batch = 4, .global_batch = 4, .sequence_length = 128, .head_chunk = 64};
  const StepUnderTest plain(model, config, {});
  const auto all = step::saved_tensors(plain.step.program);
  step::TensorSet dropped;
  for (const step::TensorId id : all) {
    const std::string& name = plain.step.program.tensor(id).name;
    if (!name.ends_with("attention_norm.residual") && name != "embedding.out") dropped.insert(id);
  }
  const StepUnderTest full(model, config, {}, 2, [&](step::Program program) {
    return step::checkpoint(std::move(program), dropped);
  });
  const auto transient = [](const StepUnderTest& run) {
    return static_cast<double>((run.plan.arena - run.plan.persistent).count);
  };
  EXPECT_LT(transient(full), 0.4 * transient(plain));
}

}  // namespace
}  // namespace plimsoll::train
