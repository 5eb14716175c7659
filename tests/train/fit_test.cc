#include "plimsoll/planner/fit.h"

#include <gtest/gtest.h>

#include "plimsoll/train/planned_run.h"
#include "tests/runtime/test_backend.h"

namespace plimsoll::train {
namespace {

using planner::Fit;
using planner::FitGoal;
using planner::FitRow;

Fit fit(const config::Config& config, Bytes limit, FitGoal goal, const runtime::Backend& backend) {
  return planner::fit(request_of(config), limit, goal, target_of(config, backend));
}


config::Config small(model::Family family) {
  config::Config config;
  config.model = {.family = family, .layers = 2, .hidden = 64, .heads = 4, .max_positions = 512};
  config.step.sequence_length = 128;
  config.train.memory_limit = "24 MiB";  // beside which a copy for checkpoints must fit as well
  return config::resolve(config);
}

Bytes arena(config::Config config, const std::string& checkpointing,
            const runtime::Backend& backend) {
  config.step.checkpointing = checkpointing;
  return plan_run(config, backend).memory.arena;
}

class FitTest : public testing::Test {
 protected:
  std::unique_ptr<runtime::Backend> backend = runtime::make_test_backend(2);
  const Bytes limit = {int64_t{24} << 20};
};

TEST_F(FitTest, FindsTheLargestMicroBatch) {
  config::Config config = small(model::Family::llama);
  const Fit found = fit(config, limit, FitGoal::micro_batch, *backend);
  const int64_t micro = found.rows.front().micro_batch;
  ASSERT_GT(micro, 1);
  for (const FitRow& row : found.rows) EXPECT_LE(row.arena, limit);
  config.step.micro_batch = config.step.global_batch = micro;
  EXPECT_LE(arena(config, "full", *backend), limit);
  config.step.micro_batch = config.step.global_batch = micro + 1;
  EXPECT_GT(arena(config, "full", *backend), limit);
}

TEST_F(FitTest, KeepsTheMicroBatchADivisorOfTheGlobalBatch) {
  config::Config config = small(model::Family::llama);
  config.step.global_batch = 12;
  const int64_t micro = fit(config, limit, FitGoal::micro_batch, *backend).rows[0].micro_batch;
  EXPECT_EQ(12 % micro, 0);
  EXPECT_GT(micro, 1);
}

TEST_F(FitTest, FindsTheLongestSequence) {
  config::Config config = small(model::Family::llama);
  const Fit found = fit(config, limit, FitGoal::sequence, *backend);
  const FitRow& row = found.rows.front();
  EXPECT_GT(row.sequence_length, 1024);
  EXPECT_EQ(row.sequence_length % 128, 0);
  EXPECT_EQ(row.micro_batch, 1);
  config.step.ffn_chunk = row.ffn_chunk;
  config.step.sequence_length = row.sequence_length + 128;
  EXPECT_GT(arena(config, "full", *backend), limit);
}

TEST_F(FitTest, StopsAtTheLearnedPositions) {
  const Fit found =
      fit(small(model::Family::gpt2), {int64_t{4} << 30}, FitGoal::sequence, *backend);
  EXPECT_EQ(found.rows.front().sequence_length, 512);
}

TEST_F(FitTest, OffersLargerMicroBatchesForShorterSequences) {
  const Fit found = fit(small(model::Family::llama), limit, FitGoal::both, *backend);
  ASSERT_GT(found.rows.size(), 2u);
  for (size_t i = 1; i < found.rows.size(); ++i) {
    EXPECT_LT(found.rows[i].sequence_length, found.rows[i - 1].sequence_length);
    EXPECT_GT(found.rows[i].micro_batch, found.rows[i - 1].micro_batch);
    EXPECT_LE(found.rows[i].arena, limit);
  }
}

TEST_F(FitTest, SaysWhenNothingFits) {
  try {
    fit(small(model::Family::llama), {1 << 20}, FitGoal::micro_batch, *backend);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::does_not_fit);
    EXPECT_NE(error.message().find("the smallest step needs"), std::string::npos);
  }
}

}  // namespace
}  // namespace plimsoll::train
