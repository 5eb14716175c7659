// The FFN in chunks of tokens gives the same losses and gradients, in less memory.
#include "plimsoll/step/passes/chunk_ffn.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/step/passes/recompute.h"
#include "tests/train/random_step.h"

namespace plimsoll::train {
namespace {

bool same_bits_as(std::span<const float> a, std::span<const float> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(double{value}));
  return most;
}

double difference(std::span<const float> a, std::span<const float> b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

struct Pair {
  StepUnderTest plain, chunked;
};

// The same step with and without chunks, and with random activations recomputed on top.
Pair random_pair(const model::ModelConfig& model, int64_t sequence, int64_t chunk) {
  const step::StepConfig config = {
      .precision = *rc::gen::element(step::Precision::fp32, step::Precision::bf16),
      .micro_batch = *rc::gen::inRange<int64_t>(1, 3),
      .global_batch = 4,
      .sequence_length = sequence,
      .head_chunk = 256};
  const bool recompute = *rc::gen::arbitrary<bool>();
  return {StepUnderTest(model, config, {}),
          StepUnderTest(model, config, {}, 2, [&](step::Program program) {
            program = step::chunk_ffn(std::move(program), chunk);
            step::validate(program);
            step::TensorSet dropped;
            for (const step::TensorId id : step::saved_tensors(program)) {
              if (recompute && *rc::gen::arbitrary<bool>()) dropped.insert(id);
            }
            program = step::recompute(std::move(program), dropped);
            step::validate(program);
            return program;
          })};
}

RC_GTEST_PROP(ChunkFfn, OfWholeBlocksIsBitIdentical, ()) {
  const model::ModelConfig model = random_model();
  const int64_t chunk = 256 * *rc::gen::inRange<int64_t>(1, 3);
  const Pair pair = random_pair(model, *rc::gen::inRange<int64_t>(1, 700), chunk);
  RC_ASSERT(!step::find_overlap(pair.chunked.step.program, pair.chunked.plan).found());
  run_micro_steps(pair.plain);
  run_micro_steps(pair.chunked);
  const auto of = [](const StepUnderTest& run, step::TensorId id) { return run.floats(id); };
  RC_ASSERT(same_bits_as(of(pair.plain, pair.plain.step.losses),
                         of(pair.chunked, pair.plain.step.losses)));
  std::string differing;
  for (const step::ParameterTensors& p : pair.plain.step.parameters) {
    const auto a = of(pair.plain, p.gradient), b = of(pair.chunked, p.gradient);
    if (p.parameter.name.ends_with("mlp.up.bias") ||
        p.parameter.name.ends_with("mlp.gate_up.bias")) {
      RC_ASSERT(difference(a, b) <= 1e-5 * largest(a));
    } else if (!same_bits_as(a, b)) {
      differing += " " + p.parameter.name;
    }
  }
  if (!differing.empty()) RC_FAIL("gradients differ:" + differing);
}

RC_GTEST_PROP(ChunkFfn, OfAnySizeKeepsLossesAndGradientsButForTheOrderOfSums, ()) {
  const Pair pair = random_pair(random_model(), *rc::gen::inRange<int64_t>(1, 60),
                                *rc::gen::inRange<int64_t>(1, 40));
  run_micro_steps(pair.plain);
  run_micro_steps(pair.chunked);
  const bool bf16 = pair.plain.step.parameters[0].compute != pair.plain.step.parameters[0].master;
  double scale = 0;
  for (const step::ParameterTensors& p : pair.plain.step.parameters) {
    scale = std::max(scale, largest(pair.plain.floats(p.gradient)));
  }
  for (const step::ParameterTensors& p : pair.plain.step.parameters) {
    // A sum in another order may round to the next bf16, and so may all that follows. Norms over
    // two columns, as these models may have, magnify roundings.
    RC_ASSERT(difference(pair.plain.floats(p.gradient), pair.chunked.floats(p.gradient)) <=
              (bf16 ? 0.03 : 1e-4) * scale);
  }
}

TEST(ChunkFfn, LowersThePeakOfALongSequence) {
  const model::ModelConfig model =
      model::resolve({.layers = 1, .hidden = 64, .heads = 4, .ffn_hidden = 1024, .vocab = 64});
  const step::StepConfig config = {
      .micro_batch = 1, .global_batch = 1, .sequence_length = 2048, .head_chunk = 64};
  const auto transient = [&](int64_t chunk) {
    const StepUnderTest run(model, config, {}, 2, [&](step::Program program) {
      return step::chunk_ffn(std::move(program), chunk);
    });
    return static_cast<double>((run.plan.arena - run.plan.persistent).count);
  };
  EXPECT_LT(transient(256), 0.35 * transient(0));
  EXPECT_EQ(transient(2048), transient(0));
}

}  // namespace
}  // namespace plimsoll::train
