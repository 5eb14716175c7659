#include "plimsoll/step/memory_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/step/streams.h"
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

// Whether op a has ended when op b begins: the transitive closure of program order on one stream
// and of `after`.
std::vector<std::vector<bool>> closure(const Program& program) {
  const size_t n = program.ops.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (size_t b = 0; b < n; ++b) {
    for (size_t a = 0; a < b; ++a) before[a][b] = program.ops[a].stream == program.ops[b].stream;
    for (const int a : program.ops[b].after) before[static_cast<size_t>(a)][b] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) before[a][b] = before[a][b] || (before[a][k] && before[k][b]);
    }
  }
  return before;
}

std::vector<std::vector<size_t>> uses_of(const Program& program) {
  std::vector<std::vector<size_t>> uses(program.tensors.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    for (const Operand& input : op.inputs) uses[static_cast<size_t>(input.tensor)].push_back(i);
    for (const Operand& output : op.outputs) uses[static_cast<size_t>(output.tensor)].push_back(i);
    if (op.workspace >= 0) uses[static_cast<size_t>(op.workspace)].push_back(i);
  }
  return uses;
}

bool all_before(const std::vector<std::vector<bool>>& before, const std::vector<size_t>& first,
                const std::vector<size_t>& second) {
  for (const size_t a : first) {
    for (const size_t b : second) {
      if (!before[a][b]) return false;
    }
  }
  return true;
}

RC_GTEST_PROP(Streams, OrderIsTheTransitiveClosure, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 40), true);
  const StreamOrder order(program);
  const auto before = closure(program);
  const int n = static_cast<int>(program.ops.size());
  for (int a = 0; a < n; ++a) {
    int last = a;
    for (int b = a + 1; b < n; ++b) {
      const bool ends = before[static_cast<size_t>(a)][static_cast<size_t>(b)];
      RC_ASSERT(order.ends_before(a, b) == ends);
      if (!ends) last = b;
    }
    RC_ASSERT(order.last_beside(a) == last);
  }
}

RC_GTEST_PROP(Streams, ShareBytesOnlyBetweenTensorsThatAreNeverLiveTogether, ()) {
  const Program program = random_program(*rc::gen::inRange(1, 40), true);
  const MemoryPlan plan = plan_memory(program);
  RC_ASSERT(!find_overlap(program, plan).found());
  const auto before = closure(program);
  const auto uses = uses_of(program);
  for (size_t a = 0; a < program.tensors.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (plan.sizes[a].count == 0 || plan.sizes[b].count == 0) continue;
      if (plan.offsets[a] >= plan.offsets[b] + plan.sizes[b]) continue;
      if (plan.offsets[b] >= plan.offsets[a] + plan.sizes[a]) continue;
      RC_ASSERT(!program.tensors[a].persistent && !program.tensors[b].persistent);
      RC_ASSERT(all_before(before, uses[a], uses[b]) || all_before(before, uses[b], uses[a]));
    }
  }
}

// A plan made as if there were one stream is found out wherever two streams make it wrong.
RC_GTEST_PROP(Streams, ThatThePlanIgnoredAreFound, ()) {
  const Program program = random_program(*rc::gen::inRange(2, 40), true);
  Program serial = program;
  for (Op& op : serial.ops) {
    op.stream = Stream::compute;
    op.after.clear();
  }
  const MemoryPlan plan = plan_memory(serial);
  const auto before = closure(program);
  const auto uses = uses_of(program);
  bool wrong = false;
  for (size_t a = 0; a < program.tensors.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool share = plan.offsets[a] < plan.offsets[b] + plan.sizes[b] &&
                         plan.offsets[b] < plan.offsets[a] + plan.sizes[a];
      wrong = wrong || (share && !all_before(before, uses[a], uses[b]) &&
                        !all_before(before, uses[b], uses[a]));
    }
  }
  if (wrong) RC_ASSERT(find_overlap(program, plan).found());
}

// A prefetch on the copy stream keeps its bytes apart from whatever it may run beside, until the op
// that waits for it.
TEST(Streams, EndLifetimesAtTheOpThatWaits) {
  Program program;
  const auto add = [&](const char* name) {
    return add_tensor(program, {.name = name, .type = {{64, 1}, Format::f32}});
  };
  const TensorId a = add("a"), b = add("b"), c = add("c"), d = add("d");
  const auto op = [&](TensorId from, TensorId to, Stream stream, std::vector<int> after) {
    program.ops.push_back({.kind = Cast{},
                           .inputs = {{from}},
                           .outputs = {{to}},
                           .stream = stream,
                           .after = std::move(after)});
  };
  op(a, a, Stream::compute, {});
  op(b, b, Stream::copy, {});
  op(c, c, Stream::compute, {});
  op(d, d, Stream::compute, {1});
  const MemoryPlan plan = plan_memory(program);
  const auto lifetime = [&](TensorId id) { return plan.lifetimes[static_cast<size_t>(id)]; };
  EXPECT_EQ(lifetime(a).end, 1);  // the copy does not wait for it
  EXPECT_EQ(lifetime(b).end, 2);  // op 3 waits for the copy
  EXPECT_EQ(lifetime(c).begin, 2);
  EXPECT_EQ(plan.arena, Bytes{2 * 256});
}

TEST(MemoryPlan, OfAnEmptyProgramIsEmpty) {
  const MemoryPlan plan = plan_memory(Program{});
  EXPECT_EQ(plan.arena, Bytes{0});
  EXPECT_FALSE(find_overlap(Program{}, plan).found());
}

}  // namespace
}  // namespace plimsoll::step
