#include "plimsoll/planner/plan_report.h"

#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

struct Planned {
  model::ModelConfig model;
  step::StepConfig config;
  step::TrainingStep step;
  step::MemoryPlan memory;

  explicit Planned(const char* preset) : model(model::resolve(model::preset(preset))) {
    config = {.micro_batch = 2, .global_batch = 4, .sequence_length = 512, .head_chunk = 128};
    step = step::build_training_step(model, config, {});
    memory = step::plan_memory(step.program);
  }
  PlanView view(Bytes capacity) const {
    return {model, config, step, memory, "a device", capacity, "a test"};
  }
};

TEST(PlanReport, AddsUpToThePeak) {
  const Planned plan("gpt2-124m");
  Bytes sum;
  for (const LiveTensor& tensor : largest_at_peak(plan.step.program, plan.memory)) {
    sum += tensor.bytes;
  }
  EXPECT_EQ(sum, plan.memory.lower_bound);
}

TEST(PlanReport, TellsTheSameBytesAsTextAndAsJson) {
  const Planned plan("gpt2-124m");
  const nlohmann::json json = plan_json(plan.view({1 << 30}));
  const std::string text = plan_text(plan.view({1 << 30}));
  EXPECT_EQ(json["memory"]["arena_bytes"], plan.memory.arena.count);
  EXPECT_NE(text.find(fmt::format("{} B", plan.memory.arena.count)), std::string::npos) << text;
}

// 6 FLOPs a parameter and token; GPT-2's attention and head chunks add a little.
TEST(PlanReport, CountsAboutSixFlopsAParameter) {
  const Planned plan("gpt2-124m");
  const double parameters = static_cast<double>(model::parameter_count(plan.model));
  EXPECT_NEAR(flops_per_token(plan.step.program, plan.config).total() / (6 * parameters), 1.0,
              0.12);
}

TEST(PlanReport, AdvisesTheCheapestChangesThatFit) {
  const Planned plan("gpt2-124m");
  const Bytes arena = plan.memory.arena;
  const std::string text = does_not_fit(plan.view({1000}), {{"worse", arena + Bytes{1}, 0.5},
                                                            {"dear", {10}, 1.2},
                                                            {"cheap", {999}, 1.01},
                                                            {"too little", arena - Bytes{1}}})
                               .message();
  EXPECT_EQ(text.find("worse"), std::string::npos) << text;
  EXPECT_EQ(text.find("too little"), std::string::npos) << text;
  EXPECT_LT(text.find("cheap"), text.find("dear")) << text;
}

TEST(PlanReport, SaysWhenNoChangeIsEnough) {
  const Planned plan("gpt2-124m");
  const Error error = does_not_fit(plan.view({1000}), {{"less", plan.memory.arena - Bytes{1}}});
  EXPECT_EQ(error.code(), Exit::does_not_fit);
  EXPECT_NE(error.message().find("less"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("still too much"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace plimsoll::planner
