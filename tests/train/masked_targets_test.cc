// A target of -1 counts for nothing; what counts is averaged over the whole step.
#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/train/training_state.h"
#include "tests/train/step_under_test.h"

namespace plimsoll::train {
namespace {

constexpr int32_t vocab = 67;

model::ModelConfig small_model() {
  return model::resolve({.layers = 2, .hidden = 32, .heads = 4, .vocab = vocab, .init_std = 0.2});
}

step::StepConfig config(int64_t micro_batch) {
  return {.precision = step::Precision::fp32,
          .micro_batch = micro_batch,
          .global_batch = 4,
          .sequence_length = 12,
          .head_chunk = 7};
}

// Four sequences, of which the first keeps all its targets, the last none.
struct Batch {
  std::vector<int32_t> tokens, targets;
  int64_t counted = 0;
};
Batch batch() {
  Batch b;
  for (int32_t i = 0; i < 48; ++i) {
    b.tokens.push_back((i * 31 + 7) % vocab);
    const int32_t sequence = i / 12;
    const bool counts = sequence == 0 || (sequence < 3 && i % (sequence + 2) == 0);
    b.targets.push_back(counts ? (i * 17 + 3) % vocab : -1);
    b.counted += counts;
  }
  return b;
}

// Runs the whole step in micro-steps of `micro_batch` sequences.
StepUnderTest run_step(int64_t micro_batch, const Batch& b) {
  StepUnderTest run(small_model(), config(micro_batch), {});
  initialize_weights(run.step, *run.executor, 3);
  run.executor->run(step::Phase::setup);
  run.set_counted_targets(b.counted);
  run.executor->fill(run.step.loss, std::byte{0});
  const size_t size = static_cast<size_t>(micro_batch) * 12;
  for (size_t begin = 0; begin < b.tokens.size(); begin += size) {
    run.executor->write(run.step.tokens, std::span(b.tokens).subspan(begin, size));
    run.executor->write(run.step.targets, std::span(b.targets).subspan(begin, size));
    run.executor->run_micro_step();
  }
  return run;
}

step::LossTotal total(const StepUnderTest& run) {
  step::LossTotal loss;
  run.executor->read_bytes(run.step.loss, std::as_writable_bytes(std::span(&loss, 1)));
  return loss;
}

TEST(MaskedTargets, AccumulateWithUnevenCountsToTheGradientOfOneBigBatch) {
  const Batch b = batch();
  const StepUnderTest whole = run_step(4, b);
  EXPECT_EQ(total(whole).targets, b.counted);
  for (const int64_t micro_batch : {1, 2}) {
    const StepUnderTest cut = run_step(micro_batch, b);
    EXPECT_EQ(total(cut).targets, b.counted);
    EXPECT_NEAR(total(cut).sum / total(whole).sum, 1, 1e-6);
    for (const step::ParameterTensors& p : whole.step.parameters) {
      const auto a = whole.floats(p.gradient), c = cut.floats(p.gradient);
      double difference = 0, norm = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(a[i] - c[i], 2);
        norm += std::pow(a[i], 2);
      }
      EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << p.parameter.name;
    }
  }
}

// The mean over the counted targets, differentiated numerically along the gradient itself.
TEST(MaskedTargets, HaveTheGradientOfTheMeanOverWhatCounts) {
  const Batch b = batch();
  const StepUnderTest run = run_step(4, b);
  const auto mean = [&] {
    run.executor->fill(run.step.loss, std::byte{0});
    run.executor->run(step::Phase::forward);
    return total(run).sum / static_cast<double>(total(run).targets);
  };
  for (const step::ParameterTensors& p : run.step.parameters) {
    const auto gradient = run.floats(p.gradient);
    double norm = 0;
    for (const float g : gradient) norm += double{g} * g;
    norm = std::sqrt(norm);
    if (norm < 1e-3) continue;
    const double h = 1e-2;
    const auto loss_at = [&](double distance) {
      {
        auto weights = run.floats(p.master);
        for (size_t i = 0; i < weights.size(); ++i) {
          weights[i] += static_cast<float>(distance * gradient[i] / norm);
        }
      }
      return mean();
    };
    const double above = loss_at(h), below = loss_at(-2 * h);
    loss_at(h);  // back
    EXPECT_NEAR((above - below) / (2 * h) / norm, 1, 2e-2) << p.parameter.name;
  }
}

TEST(MaskedTargets, LeaveNoTraceOfTheTokensBehindThem) {
  Batch b = batch();
  const StepUnderTest run = run_step(4, b);
  const auto losses = run.floats(run.step.losses);
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(losses[i] == 0, b.targets[i] < 0) << i;
  // The last sequence has no target: whatever its tokens are, the gradient is the same.
  for (size_t i = 36; i < 48; ++i) b.tokens[i] = 5;
  const StepUnderTest other = run_step(4, b);
  for (const step::ParameterTensors& p : run.step.parameters) {
    EXPECT_TRUE(run.floats(p.gradient) == other.floats(p.gradient)) << p.parameter.name;
  }
}

}  // namespace
}  // namespace plimsoll::train
