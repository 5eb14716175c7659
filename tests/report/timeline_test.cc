#include "plimsoll/report/timeline.h"

#include <gtest/gtest.h>

#include "plimsoll/step/builder.h"

namespace plimsoll::report {
namespace {

TEST(Timeline, StacksToTheLiveBytesOfEveryOp) {
  const model::ModelConfig model = model::resolve(model::preset("gpt2-124m"));
  const step::Program program =
      step::build_training_step(
          model, {.micro_batch = 2, .global_batch = 4, .sequence_length = 512, .head_chunk = 128},
          {})
          .program;
  const step::MemoryPlan memory = step::plan_memory(program);
  const StackedChart chart = memory_timeline(program, memory);
  const std::vector<Bytes> live = live_bytes(program, memory);
  const size_t setup = live.size() - chart.layers.front().size();
  for (size_t op = setup; op < live.size(); ++op) {
    double stacked = 0;
    for (const auto& layer : chart.layers) stacked += layer[op - setup];
    ASSERT_EQ(stacked, static_cast<double>(live[op].count)) << "op " << op;
  }
}

}  // namespace
}  // namespace plimsoll::report
