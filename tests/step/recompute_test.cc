// A copy that several ops make is complete only when all of them have run again.
#include "plimsoll/step/passes/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::step {
namespace {

// qkv -> QkNorm -> (qk, statistics); Rope turns qk in place; the backward asks for both, in the
// order given.
struct Normed {
  Program program;
  TensorId qk = -1, statistics = -1;
};

Normed normed(bool statistics_first) {
  Normed n;
  const auto add = [&](const char* name, Shape shape, Role role, Format format = Format::f32) {
    return add_tensor(n.program, {.name = name,
                                  .type = {shape, format},
                                  .role = role,
                                  .persistent = role != Role::saved && role != Role::activation});
  };
  const HeadShape shape = {.heads = 2, .query_groups = 1, .head_dim = 4, .sequence = 8};
  const TensorId qkv = add("qkv", {8, 16}, Role::input);
  const TensorId q = add("q", {1, 4}, Role::param), k = add("k", {1, 4}, Role::param);
  const TensorId table = add("table", {8, 4}, Role::workspace);
  n.qk = add("qk", {8, 12}, Role::saved);
  n.statistics = add("statistics", {8, 3}, Role::saved);
  append(n.program, {.kind = QkNorm{.shape = shape},
                     .inputs = {{qkv}, {q}, {k}},
                     .outputs = {{n.qk}, {n.statistics}}});
  append(n.program, {.kind = Rope{.heads = 3, .head_dim = 4, .sequence = 8},
                     .inputs = {{n.qk}, {table}},
                     .outputs = {{n.qk}}});
  const auto read = [&](TensorId id, const char* name) {
    const TensorId to = add(name, n.program.tensor(id).type.shape, Role::activation, Format::bf16);
    append(n.program,
           {.kind = Cast{}, .inputs = {{id}}, .outputs = {{to}}, .phase = Phase::backward});
  };
  if (statistics_first) read(n.statistics, "read.statistics");
  read(n.qk, "read.qk");
  if (!statistics_first) read(n.statistics, "read.statistics");
  return n;
}

TEST(Recompute, RunsEveryWriterOfACopyOnceAndBeforeItIsRead) {
  for (const bool statistics_first : {false, true}) {
    const Normed n = normed(statistics_first);
    const Program program = recompute(n.program, {n.qk, n.statistics});
    validate(program);
    std::vector<std::string> kinds;
    for (const Op& op : program.ops) {
      if (op.phase == Phase::recompute) kinds.emplace_back(kind_name(op));
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"qk_norm", "rope"})) << listing(program);
    // The turn in place comes before whatever reads its copy.
    TensorId copy = -1;
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      if (op.phase == Phase::recompute && std::holds_alternative<Rope>(op.kind)) {
        copy = op.outputs[0].tensor;
      }
      if (op.phase == Phase::backward && program.tensor(op.outputs[0].tensor).name == "read.qk") {
        EXPECT_EQ(op.inputs[0].tensor, copy) << listing(program);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::step
