#include "plimsoll/step/memory_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/step/random_program.h"

namespace plimsoll::step {
namespace {

// The oracle of the oracle: all pairs.
bool any_pair_overlaps(const Program& program, const MemoryPlan& plan) {
  for (size_t a = 0; a < program.tensors.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool in_time = !plan.lifetimes[a].empty() && !plan.lifetimes[b].empty() &&
                           plan.lifetimes[a].overlaps(plan.lifetimes[b]);
      const bool in_space = plan.offsets[a] < plan.offsets[b] + plan.sizes[b] &&
                            plan.offsets[b] < plan.offsets[a] + plan.sizes[a];
      if (in_time && in_space) return true;
    }
  }
  return false;
}

RC_GTEST_PROP(MemoryPlan, NeverOverlapsLiveTensors, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 60));
  const MemoryPlan plan = plan_memory(program);
  RC_ASSERT(!find_overlap(program, plan).found());
  RC_ASSERT(!any_pair_overlaps(program, plan));
}

RC_GTEST_PROP(MemoryPlan, KeepsEveryTensorInsideTheArena, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 60));
  const MemoryPlan plan = plan_memory(program);
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    RC_ASSERT(plan.offsets[i].count % plan.alignment == 0);
    RC_ASSERT(plan.offsets[i] + plan.sizes[i] <= plan.arena);
    if (!plan.lifetimes[i].empty()) RC_ASSERT(plan.sizes[i] >= bytes(program.tensors[i]));
  }
}

RC_GTEST_PROP(MemoryPlan, IsNeverBelowTheLowerBound, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 60));
  const MemoryPlan plan = plan_memory(program);
  RC_ASSERT(plan.arena >= plan.lower_bound);
  const std::vector<Bytes> live = live_bytes(program, plan);
  RC_ASSERT(*std::max_element(live.begin(), live.end()) == plan.lower_bound);
  RC_ASSERT(live[static_cast<size_t>(plan.peak_op)] == plan.lower_bound);
  Bytes by_role;
  for (const Bytes bytes : plan.at_peak) by_role += bytes;
  RC_ASSERT(by_role == plan.lower_bound);
}

RC_GTEST_PROP(MemoryPlan, TheOverlapOracleFindsAPlantedOverlap, ()) {
  const Program program = random_program(*rc::gen::inRange(2, 40));
  MemoryPlan plan = plan_memory(program);
  // Two tensors of one op are live together: put one at the other's address.
  const Op& op = program.ops[*rc::gen::inRange<size_t>(0, program.ops.size())];
  plan.offsets[static_cast<size_t>(op.outputs[0].tensor)] =
      plan.offsets[static_cast<size_t>(op.inputs[0].tensor)];
  RC_ASSERT(find_overlap(program, plan).found());
  RC_ASSERT(any_pair_overlaps(program, plan));
}

RC_GTEST_PROP(MemoryPlan, IsTheSameEveryTime, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 60));
  RC_ASSERT(plan_memory(program).offsets == plan_memory(program).offsets);
}

TEST(MemoryPlan, OfAnEmptyProgramIsEmpty) {
  const MemoryPlan plan = plan_memory(Program{});
  EXPECT_EQ(plan.arena, Bytes{0});
  EXPECT_FALSE(find_overlap(Program{}, plan).found());
}

}  // namespace
}  // namespace plimsoll::step
