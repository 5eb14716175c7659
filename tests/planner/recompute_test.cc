#include "plimsoll/planner/recompute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "plimsoll/step/memory_plan.h"
#include "plimsoll/step/training_spec.h"

namespace plimsoll::planner {
namespace {

// A model small enough for every subset of its groups to be tried.
struct Small {
  model::ModelConfig model;
  step::StepConfig config;
  step::TrainingStep step;
  step::ScratchModel scratch;
  cost::DeviceProfile device = cost::nominal_cpu();

  explicit Small(int64_t layers, int64_t sequence = 256,
                 model::Family family = model::Family::llama)
      : model(model::resolve({.family = family,
                              .layers = layers,
                              .hidden = 64,
                              .heads = 4,
                              .ffn_hidden = 160,
                              .vocab = 64,
                              .max_positions = 2048})),
        config{.micro_batch = 2, .global_batch = 2, .sequence_length = sequence, .head_chunk = 64},
        step(step::build_training_step(model, config, {})) {}

  Dropped dropped(const std::string& policy, Bytes capacity = {INT64_MAX}) const {
    Sizer sizer(step.program, scratch, device);
    return dropped_by(policy, {step.program, model.layers, sizer, capacity});
  }
  step::TensorSet tensors(const std::string& policy) const { return dropped(policy).tensors; }
  std::vector<SavedGroup> groups() const {
    Sizer sizer(step.program, scratch, device);
    return saved_groups(step.program, sizer);
  }
  Bytes arena(const step::TensorSet& dropped) const {
    return step::plan_memory(with_workspaces(step::recompute(step.program, dropped), scratch)).arena;
  }
  Seconds time(const step::TensorSet& dropped) const {
    return cost::step_time(step::recompute(step.program, dropped), device, 1);
  }
  Bytes arena(const std::string& policy) const { return arena(tensors(policy)); }
};

std::string error_of(const Small& small, const std::string& policy) {
  try {
    small.tensors(policy);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.message();
  }
}

TEST(Policies, SaveMoreFromNoneOverLayersToFull) {
  const Small small(4);
  EXPECT_TRUE(small.tensors("none").empty());
  Bytes previous = small.arena("none");
  for (const char* policy : {"layers:1", "layers:2", "layers:3"}) {
    EXPECT_LT(small.arena(policy), previous) << policy;
    previous = small.arena(policy);
  }
  EXPECT_LE(small.arena("full"), previous);  // the last layer is read at once: it frees nothing
  EXPECT_EQ(small.tensors("layers:4"), small.tensors("full"));
}

TEST(Policies, FullKeepsTheInputOfEveryLayerOnly) {
  const Small small(3);
  const step::Program program =
      step::recompute(small.step.program, small.tensors("full"));
  std::vector<std::string> saved;
  for (const step::TensorId id : step::saved_tensors(program)) {
    const step::Tensor& tensor = program.tensor(id);
    if (tensor.layer >= 0) saved.push_back(tensor.name);
  }
  EXPECT_EQ(saved, (std::vector<std::string>{"layers.1.attention_norm.residual",
                                             "layers.2.attention_norm.residual"}));
}

TEST(Policies, SelectiveTakesOpsAndTensors) {
  const Small small(2);
  const auto names = [&](const std::string& policy) {
    std::set<std::string> all;
    for (const step::TensorId id : small.tensors(policy)) {
      all.insert(small.step.program.tensor(id).name);
    }
    return all;
  };
  EXPECT_EQ(names("selective:swi_glu"),
            (std::set<std::string>{"layers.0.mlp.swiglu.out", "layers.1.mlp.swiglu.out"}));
  EXPECT_EQ(names("selective:mlp.swiglu.out"), names("selective:swi_glu"));
  EXPECT_EQ(names("selective:swi_glu, attention").size(), 6u);  // out and lse of each layer
}

TEST(Policies, OfNoMeaningAreRefused) {
  const Small small(2);
  EXPECT_NE(error_of(small, "fully").find("not a policy"), std::string::npos);
  EXPECT_NE(error_of(small, "layers:3").find("from 1 to 2"), std::string::npos);
  EXPECT_NE(error_of(small, "layers:").find("not a policy"), std::string::npos);
  EXPECT_NE(error_of(small, "selective:dropout").find("swi_glu"), std::string::npos);
  EXPECT_NE(error_of(small, "budget:lots").find("not a size"), std::string::npos);
}

RC_GTEST_PROP(Budget, IsNeverExceeded, ()) {
  const Small small(*rc::gen::inRange<int64_t>(1, 5), *rc::gen::element<int64_t>(64, 200, 512));
  const int64_t most = small.arena("none").count, least = small.arena("full").count;
  const Bytes budget = {*rc::gen::inRange(least, most + 1)};
  const auto dropped = small.tensors(fmt::format("budget:{}", budget.count));
  RC_ASSERT(small.arena(dropped) <= budget);
  const Dropped automatic = small.dropped("budget:auto", budget);
  RC_ASSERT(automatic.tensors == dropped);
  RC_ASSERT(!automatic.least);
}

// Every subset of the groups, at budgets first/steps .. 1 of the way between the least and the most
// that any needs.
void compare_with_every_choice(const Small& small, int first, int steps) {
  const std::vector<SavedGroup> groups = small.groups();
  ASSERT_LE(groups.size(), 15u);
  std::vector<std::pair<Bytes, Seconds>> all;
  for (size_t subset = 0; subset < size_t{1} << groups.size(); ++subset) {
    step::TensorSet dropped;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (subset >> i & 1) dropped.insert(groups[i].tensors.begin(), groups[i].tensors.end());
    }
    all.push_back({small.arena(dropped), small.time(dropped)});
  }
  const int64_t most = small.arena("none").count;
  const int64_t least = std::min_element(all.begin(), all.end())->first.count;
  for (int i = first; i <= steps; ++i) {
    const Bytes budget = {least + (most - least) * i / steps};
    Seconds best = {1e9};
    for (const auto& [arena, time] : all) {
      if (arena <= budget) best = std::min(best, time);
    }
    const auto chosen = small.tensors(fmt::format("budget:{}", budget.count));
    EXPECT_LE(small.time(chosen).count, 1.01 * best.count)
        << small.config.sequence_length << " tokens, budget " << i << "/" << steps;
  }
}

TEST(Budget, IsWithinOnePercentOfTheBestChoiceInOneLayer) {
  for (const model::Family family : {model::Family::llama, model::Family::gpt2}) {
    for (const int64_t sequence : {48, 512}) {
      compare_with_every_choice(Small(1, sequence, family), 0, 25);
    }
  }
}

TEST(BudgetLong, IsWithinOnePercentOfTheBestChoiceInTwoLayers) {
  compare_with_every_choice(Small(2, 256, model::Family::llama), 1, 25);
  compare_with_every_choice(Small(2, 512, model::Family::gpt2), 1, 25);
}

TEST(Budget, BelowTheLeastSaysTheLeast) {
  const Small small(3);
  const Dropped dropped = small.dropped("budget:1 KiB");
  ASSERT_TRUE(dropped.least);
  EXPECT_LE(*dropped.least, small.arena("full"));
  EXPECT_LE(*dropped.least, small.arena(dropped.tensors));
}

TEST(Frontier, NeverTradesMemoryForNothing) {
  for (const int64_t layers : {1, 4, 9}) {
    const Small small(layers);
    Sizer sizer(small.step.program, small.scratch, small.device);
    const std::vector<FrontPoint> front = frontier(
        {small.step.program, layers, sizer, {INT64_MAX}}, small.time({}), 1, 24);
    ASSERT_GE(front.size(), 3u);
    for (size_t i = 1; i < front.size(); ++i) {
      EXPECT_LT(front[i].arena, front[i - 1].arena);
      EXPECT_GE(front[i].recompute, front[i - 1].recompute);
      EXPECT_GE(front[i].step, front[i - 1].step);
    }
  }
}

}  // namespace
}  // namespace plimsoll::planner
