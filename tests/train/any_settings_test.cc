// Whatever the sizes: a plan with sane figures, or an error that says which key. Never a negative
// arena, a crash, or a search without end.
#include <gtest/gtest.h>

#include <random>

#include "plimsoll/planner/fit.h"
#include "plimsoll/train/planned_run.h"

namespace plimsoll::train {
namespace {

config::Config resolved(const std::vector<std::string>& settings) {
  return config::resolve(config::read_config("", settings));
}

std::string outcome(const std::vector<std::string>& settings) {
  try {
    const config::Config config = resolved(settings);
    const planner::Target target = cpu_target(config);
    const planner::PlannedRun run = planner::plan_run(request_of(config), target);
    EXPECT_GT(run.memory.arena, run.memory.persistent);
    EXPECT_GE(run.memory.arena, run.memory.lower_bound);
    EXPECT_LT(run.memory.arena.count, int64_t{1} << 61);
    EXPECT_GT(run.memory.persistent.count, 0);
    EXPECT_GT(run.time_per_token.count, 0);
    EXPECT_LT(run.step.program.ops.size(), 2 * step::most_ops);
    for (const Bytes size : run.memory.sizes) EXPECT_GE(size.count, 0);
    return "planned";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Exit::usage || error.code() == Exit::does_not_fit)
        << error.message();
    return error.message();
  }
}

TEST(AnySettings, OfAbsurdSizesNameTheKey) {
  const auto names = [](const std::string& key, std::vector<std::string> settings) {
    settings.insert(settings.begin(), "model.preset=llama-3m");
    const std::string text = outcome(settings);
    EXPECT_NE(text.find(key), std::string::npos) << text;
  };
  names("model.h", {"model.hidden=1000000", "model.heads=1000000", "model.head_dim=1000000"});
  names("step.micro_batch", {"step.micro_batch=16777216", "step.sequence_length=16777216",
                             "model.hidden=4096"});
  names("model.layers", {"model.layers=10000"});
  names("step.head_chunk", {"step.sequence_length=1048576", "step.head_chunk=1"});
  names("step.ffn_chunk", {"step.sequence_length=1048576", "step.ffn_chunk=1"});
  names("model.", {"model.hidden=16777216", "model.heads=16777216", "model.head_dim=16777216",
                   "model.ffn_hidden=16777216", "model.vocab=16777216"});
}

TEST(AnySettings, GiveASanePlanOrAnErrorThatSaysWhy) {
  std::mt19937 random(2026);
  const auto one_of = [&](auto... values) {
    const std::vector<std::string> all = {values...};
    return all[random() % all.size()];
  };
  for (int i = 0; i < 60; ++i) {
    std::vector<std::string> settings = {"model.preset=" + one_of("llama-3m", "gpt2-124m")};
    const auto set = [&](const char* key, const std::string& value) {
      settings.push_back(std::string(key) + "=" + value);
    };
    if (random() % 2) set("model.layers", one_of("1", "2", "3", "40", "10000"));
    if (random() % 3 == 0) set("model.hidden", one_of("64", "1000000", "16777216", "6"));
    if (random() % 3 == 0) set("model.heads", one_of("1", "2", "1000000"));
    if (random() % 3 == 0) set("model.head_dim", one_of("2", "64", "16777216"));
    if (random() % 3 == 0) set("model.ffn_hidden", one_of("1", "64", "16777216"));
    if (random() % 3 == 0) set("model.vocab", one_of("1", "264", "16777216"));
    if (random() % 2) set("step.micro_batch", one_of("1", "3", "512", "16777216"));
    if (random() % 2) set("step.sequence_length", one_of("1", "100", "1024", "16777216"));
    if (random() % 3 == 0) set("step.head_chunk", one_of("1", "64", "16777216"));
    if (random() % 4 == 0) set("step.ffn_chunk", one_of("1", "256", "16777216"));
    set("step.checkpointing",
        one_of("none", "full", "layers:1", "selective:attention", "budget:1 GiB", "budget:auto"));
    if (random() % 4 == 0) set("recipe.name", one_of("mxfp8", "nvfp4", "fp8_delayed"));
    SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " --set ")));
    outcome(settings);
  }
}

TEST(AnySettings, OfABudgetThatCannotBeKeptAreAPlanThatDoesNotFit) {
  for (const char* policy : {"budget:auto", "budget:1 MiB"}) {
    const config::Config config =
        resolved({"model.preset=llama-3m", std::string("step.checkpointing=") + policy,
                  "train.memory_limit=2 MiB"});
    const planner::Target target = cpu_target(config);
    const planner::PlannedRun run = planner::plan_run(request_of(config), target);
    EXPECT_GT(run.memory.arena, run.limit);
    EXPECT_FALSE(planner::what_ifs(run, target).empty());
    try {
      planner::require_fit(run, target);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::does_not_fit);
      EXPECT_NE(error.message().find("largest at the peak"), std::string::npos) << error.message();
    }
  }
}

TEST(AnySettings, AutomaticSnapshotsAreTakenWhereTheyFitOnly) {
  const auto plan = [](const std::string& limit, const std::string& in_background) {
    const config::Config config = resolved({"model.preset=llama-3m", "train.memory_limit=" + limit,
                                            "checkpoint.in_background=" + in_background});
    return planner::plan_run(request_of(config), cpu_target(config));
  };
  const planner::PlannedRun without = plan("1 GiB", "false"), with = plan("1 GiB", "true");
  EXPECT_EQ(plan("1 GiB", "auto").memory.arena, with.memory.arena);
  EXPECT_EQ(plan(fmt::format("{}", with.memory.arena.count), "auto").memory.arena,
            with.memory.arena);
  const planner::PlannedRun tight = plan(fmt::format("{}", with.memory.arena.count - 1), "auto");
  EXPECT_EQ(tight.memory.arena, without.memory.arena);
  EXPECT_EQ(tight.snapshot, -1);

  // On another device the copy is in the memory of the host.
  const config::Config config = resolved({"model.preset=llama-3m"});
  planner::Target device = cpu_target(config);
  device.profile.snapshot_on_host = true;
  const planner::PlannedRun run = planner::plan_run(request_of(config), device);
  EXPECT_EQ(run.memory.arena, without.memory.arena);
  EXPECT_EQ(run.host_snapshot, planner::snapshot_bytes(run.step));
  EXPECT_NE(planner::plan_text(run.view()).find("host memory"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::train
