// Activation checkpointing changes memory and time, never a bit of the result.
#include "plimsoll/step/passes/recompute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "tests/train/random_step.h"

namespace plimsoll::train {
namespace {

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
    return step::recompute(std::move(program), dropped);
  });
  validate(checkpointed.step.program);
  RC_ASSERT(!step::find_overlap(checkpointed.step.program, checkpointed.plan).found());
  RC_ASSERT(checkpointed.executor->allocated() == checkpointed.plan.arena);
  run_micro_steps(plain);
  run_micro_steps(checkpointed);
  const auto same = [&](step::TensorId id) {
    const auto a = plain.floats(id), b = checkpointed.floats(id);
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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
    return step::recompute(std::move(program), dropped);
  });
  const auto transient = [](const StepUnderTest& run) {
    return static_cast<double>((run.plan.arena - run.plan.persistent).count);
  };
  EXPECT_LT(transient(full), 0.4 * transient(plain));
}

}  // namespace
}  // namespace plimsoll::train
