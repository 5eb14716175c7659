#include "plimsoll/train/trainer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "plimsoll/train/training_state.h"
#include "tests/data/files.h"
#include "tests/model/random_features.h"
#include "tests/runtime/test_backend.h"

namespace plimsoll::train {
namespace {

// A text that a model can learn something from.
std::string corpus_text() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("{} plus {} is {}. ", i, i % 7, i + i % 7);
  return text;
}

class Trainers : public ::testing::Test {
 protected:
  Trainers() : backend_(runtime::make_test_backend(2)) {
    folder_.write("corpus.txt", corpus_text());
  }

  config::Config small_config() const {
    config::Config config;
    config.model = {
        .layers = 2, .hidden = 32, .heads = 4, .query_groups = 2, .head_dim = 8, .ffn_hidden = 48};
    config.step = {.precision = step::Precision::bf16,
                   .micro_batch = 2,
                   .global_batch = 4,
                   .sequence_length = 24};
    config.schedule.lr = 1e-2;
    config.data.train = folder_ / "corpus.txt";
    config.train.steps = 20;
    config.train.eval_sequences = 5;
    return config;
  }

  data::Dataset open(const config::Config& config) const {
    return data::open_dataset({.train = config.data.train,
                               .validation_fraction = 0.05,
                               .sequence_length = config.step.sequence_length,
                               .vocabulary = config.model.vocab});
  }

  std::vector<double> losses(Trainer& trainer, int steps) const {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(trainer.step().loss);
    return all;
  }

  data::Folder folder_;
  std::unique_ptr<runtime::Backend> backend_;
};

TEST_F(Trainers, LearnSomething) {
  for (const auto precision : {step::Precision::fp32, step::Precision::bf16}) {
    config::Config config = small_config();
    config.step.precision = precision;
    config = config::resolve(config);
    const data::Dataset dataset = open(config);
    const PlannedRun run = plan_run(config, *backend_);
    Trainer trainer(run, *backend_, dataset);
    trainer.start_fresh();
    const double before = trainer.evaluate();
    EXPECT_NEAR(before, std::log(264), 0.2);
    losses(trainer, 20);
    EXPECT_LT(trainer.evaluate(), before - 1.5);
  }
}

TEST_F(Trainers, RepeatARunBitForBit) {
  const config::Config config = config::resolve(small_config());
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer first(run, *backend_, dataset), second(run, *backend_, dataset);
  first.start_fresh();
  second.start_fresh();
  EXPECT_EQ(losses(first, 8), losses(second, 8));
}

TEST_F(Trainers, EvaluateWithoutLeavingATrace) {
  const config::Config config = config::resolve(small_config());
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer plain(run, *backend_, dataset), evaluating(run, *backend_, dataset);
  plain.start_fresh();
  evaluating.start_fresh();
  for (int i = 0; i < 5; ++i) {
    const double held_out = evaluating.evaluate();
    EXPECT_EQ(held_out, evaluating.evaluate());
    EXPECT_EQ(plain.step().loss, evaluating.step().loss) << "step " << i + 1;
  }
}

// What an op does not write before it is read would show: as NaN, or as another number.
TEST_F(Trainers, DoNotDependOnWhatWasInTheArena) {
  const config::Config config = config::resolve(small_config());
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer clean(run, *backend_, dataset), dirty(run, *backend_, dataset);
  const auto spoil = [&] {
    for (size_t i = 0; i < run.step.program.tensors.size(); ++i) {
      if (run.step.program.tensors[i].persistent) continue;
      if (run.memory.sizes[i].count == 0) continue;
      dirty.executor().fill(static_cast<step::TensorId>(i), std::byte{0xff});
    }
  };
  clean.start_fresh();
  spoil();
  dirty.start_fresh();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(clean.step().loss, dirty.step().loss) << "step " << i + 1;
    spoil();
  }
}

TEST_F(Trainers, ContinueBitIdenticallyFromACheckpoint) {
  for (const auto precision : {step::Precision::fp32, step::Precision::bf16}) {
    config::Config config = small_config();
    config.step.precision = precision;
    config = config::resolve(config);
    const data::Dataset dataset = open(config);
    const PlannedRun run = plan_run(config, *backend_);
    Trainer whole(run, *backend_, dataset);
    whole.start_fresh();
    losses(whole, 5);
    const std::filesystem::path root = folder_ / fmt::format("{}", run.memory.arena.count);
    checkpoint::save_checkpoint(root, {.step = 5, .samples = whole.samples_consumed()},
                                checkpoint_shards(run.step, whole.executor()));
    Trainer resumed(run, *backend_, dataset);
    const auto found = checkpoint::newest_valid(root);
    ASSERT_TRUE(found);
    checkpoint::load_checkpoint(*found, checkpoint_shards(run.step, resumed.executor()));
    resumed.start_from(found->state.step, found->state.samples);
    EXPECT_EQ(losses(whole, 8), losses(resumed, 8));
    EXPECT_EQ(whole.evaluate(), resumed.evaluate());
  }
}

TEST_F(Trainers, GetTheSameGradientHoweverABatchIsCut) {
  std::vector<double> norms;
  for (const int64_t micro : {1, 2, 4}) {
    config::Config config = small_config();
    config.step.precision = step::Precision::fp32;
    config.step.micro_batch = micro;
    config = config::resolve(config);
    const data::Dataset dataset = open(config);
    const PlannedRun run = plan_run(config, *backend_);
    Trainer trainer(run, *backend_, dataset);
    trainer.start_fresh();
    norms.push_back(trainer.step().grad_norm);
  }
  EXPECT_NEAR(norms[1] / norms[0], 1, 1e-5);
  EXPECT_NEAR(norms[2] / norms[0], 1, 1e-5);
}

// Whatever is computed at once: the same sequences, summed in the same order.
TEST_F(Trainers, EvaluateToTheSameBitsForAnyMicroBatch) {
  for (const auto precision : {step::Precision::fp32, step::Precision::bf16}) {
    std::vector<double> held_out;
    for (const int64_t micro : {1, 2, 3, 4, 7}) {
      config::Config config = small_config();
      config.step.precision = precision;
      config.step.micro_batch = config.step.global_batch = micro;
      config = config::resolve(config);
      const data::Dataset dataset = open(config);
      const PlannedRun run = plan_run(config, *backend_);
      Trainer trainer(run, *backend_, dataset);
      trainer.start_fresh();
      held_out.push_back(trainer.evaluate());
    }
    for (const double loss : held_out) EXPECT_EQ(loss, held_out.front());
  }
}

// A scale that is too large at first: the steps that overflow are skipped, and the bias correction
// of the first update is that of step 1.
TEST_F(Trainers, CountUpdatesNotSkippedStepsInTheBiasCorrection) {
  config::Config config = small_config();
  config.recipe.name = step::Recipe::fp16;
  config.recipe.last_bf16 = 0;
  config.recipe.loss_scale_log2 = 40;
  config = config::resolve(config);
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer trainer(run, *backend_, dataset);
  trainer.start_fresh();
  int skipped = 0;
  for (int i = 1; i <= 40; ++i) {
    const StepResult result = trainer.step();
    skipped += result.skipped;
    std::array<float, 3> settings;
    trainer.executor().read(run.step.settings, settings);
    const auto update = static_cast<double>(trainer.updates_done() + result.skipped);
    EXPECT_EQ(settings[1], static_cast<float>(1 - std::pow(config.optimizer.beta1, update)));
    EXPECT_EQ(result.grad_norm == 0, result.skipped);
  }
  EXPECT_GT(skipped, 5);
  EXPECT_LT(skipped, 40);
  EXPECT_EQ(trainer.updates_done(), 40 - skipped);
  EXPECT_EQ(trainer.overflows_at_scale_one(), 0);

  // And it goes on so from a checkpoint's numbers.
  Trainer resumed(run, *backend_, dataset);
  const auto from = checkpoint_shards(run.step, trainer.executor());
  const auto to = checkpoint_shards(run.step, resumed.executor());
  for (size_t s = 0; s < from.size(); ++s) {
    for (size_t t = 0; t < from[s].tensors.size(); ++t) {
      std::vector<std::byte> bytes(static_cast<size_t>(from[s].tensors[t].size.count));
      from[s].tensors[t].read(0, bytes);
      to[s].tensors[t].write(0, bytes);
    }
  }
  resumed.start_from(40, trainer.samples_consumed(), trainer.updates_done());
  EXPECT_EQ(losses(trainer, 3), losses(resumed, 3));
}

// A head whose gradients no scale can hold: every step is skipped, and counted.
TEST_F(Trainers, CountStepsThatOverflowAtTheLeastLossScale) {
  config::Config config = small_config();
  config.model.tied_head = false;
  config.recipe.name = step::Recipe::fp16;
  config.recipe.last_bf16 = 0;
  config.recipe.loss_scale_log2 = 2;
  config = config::resolve(config);
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer trainer(run, *backend_, dataset);
  trainer.start_fresh();
  const auto weights_of = [&](size_t parameter) {
    const step::TensorId id = run.step.parameters[parameter].master;
    std::vector<float> weights(
        static_cast<size_t>(run.step.program.tensor(id).type.shape.elements()));
    trainer.executor().read(id, weights);
    return weights;
  };
  for (size_t i = 0; i < run.step.parameters.size(); ++i) {
    if (!run.step.parameters[i].parameter.name.starts_with("head")) continue;
    std::vector<float> head = weights_of(i);
    for (float& weight : head) weight *= 1e12f;
    trainer.executor().write(run.step.parameters[i].master, head);
  }
  trainer.start_from(0, 0);
  const std::vector<float> before = weights_of(0);
  for (int i = 1; i <= 6; ++i) {
    const StepResult result = trainer.step();
    EXPECT_TRUE(result.skipped) << i;
    EXPECT_EQ(trainer.overflows_at_scale_one(), std::max(0, i - 2));
  }
  EXPECT_EQ(trainer.updates_done(), 0);
  EXPECT_EQ(weights_of(0), before);
}

RC_GTEST_FIXTURE_PROP(Trainers, AllocateWhatWasPlannedToTheByte, ()) {
  config::Config config = small_config();
  config.model.layers = *rc::gen::inRange<int64_t>(1, 4);
  config.model.heads = *rc::gen::element<int64_t>(1, 2, 4);
  config.model.head_dim = 2 * *rc::gen::inRange<int64_t>(1, 8);
  config.model.hidden = config.model.heads * config.model.head_dim;
  config.model.ffn_hidden = *rc::gen::inRange<int64_t>(1, 64);
  model::draw_features(config.model);
  config.step.precision = *rc::gen::element(step::Precision::fp32, step::Precision::bf16);
  config.step.sequence_length = *rc::gen::inRange<int64_t>(1, 40);
  config.step.head_chunk = *rc::gen::inRange<int64_t>(1, 100);
  config.checkpoint.in_background =
      *rc::gen::element(config::InBackground::automatic, config::InBackground::no);
  config = config::resolve(config);
  const data::Dataset dataset = open(config);
  const PlannedRun run = plan_run(config, *backend_);
  Trainer trainer(run, *backend_, dataset);
  trainer.start_fresh();
  RC_ASSERT(std::isfinite(trainer.step().loss));
  RC_ASSERT(trainer.allocated() == run.memory.arena);
  RC_ASSERT(!step::find_overlap(run.step.program, run.memory).found());
  RC_ASSERT(planner::plan_json(run.view())["memory"]["arena_bytes"] == run.memory.arena.count);
}

}  // namespace
}  // namespace plimsoll::train
