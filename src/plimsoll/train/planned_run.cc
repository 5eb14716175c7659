#include "plimsoll/train/planned_run.h"

#include <set>

#include "plimsoll/step/passes/chunk_ffn.h"
#include "plimsoll/step/passes/precision.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

namespace {

constexpr int frontier_points = 24;

// The step of the config before any of its activations is dropped, and what it may use.
PlannedRun build(const config::Config& config, const runtime::Backend& backend) {
  PlannedRun run;
  run.config = config;
  run.step = step::build_training_step(config.model, config.step, config.optimizer);
  run.step.program = step::chunk_ffn(std::move(run.step.program), config.step.ffn_chunk);
  run.step = step::apply_recipe(std::move(run.step), config.recipe, config.model.layers);
  if (config.checkpoint.in_background) {
    const Bytes size = snapshot_bytes(run.step);
    run.snapshot = add_tensor(run.step.program, {.name = "checkpoint.snapshot",
                                                 .type = {{1, (size.count + 3) / 4}, Format::i32},
                                                 .role = step::Role::workspace,
                                                 .persistent = true});
  }
  if (config.train.memory_limit.empty()) {
    const auto [bytes, source] = backend.capacity();
    run.capacity = bytes;
    run.capacity_source = source;
  } else {
    run.capacity = parse_bytes(config.train.memory_limit, "train.memory_limit");
    run.capacity_source = "train.memory_limit";
  }
  run.device = backend.description();
  return run;
}

planner::PolicyContext policy_context(const PlannedRun& run, const runtime::Backend& backend) {
  return {.program = run.step.program,
          .layers = run.config.model.layers,
          .device = cost::nominal_cpu(),
          .size =
              [&backend](const step::Program& program) {
                return step::plan_memory(runtime::with_workspaces(program, backend)).arena;
              },
          .capacity = run.capacity};
}

}  // namespace

PlannedRun plan_run(const config::Config& config, const runtime::Backend& backend) {
  PlannedRun run = build(config, backend);
  const planner::PolicyContext context = policy_context(run, backend);
  const step::TensorSet dropped = planner::dropped_by(config.step.checkpointing, context);
  const bool none = config.step.checkpointing == "none";
  if (!none) run.without_checkpointing = context.size(run.step.program);
  run.step.program =
      runtime::with_workspaces(step::recompute(std::move(run.step.program), dropped), backend);
  run.memory = step::plan_memory(run.step.program);
  if (none) run.without_checkpointing = run.memory.arena;
  return run;
}

std::vector<planner::FrontPoint> frontier(const config::Config& config,
                                          const runtime::Backend& backend) {
  const PlannedRun run = build(config, backend);
  return planner::frontier(policy_context(run, backend),
                           config.step.global_batch / config.step.micro_batch, frontier_points);
}

std::vector<planner::WhatIf> what_ifs(const PlannedRun& run, const runtime::Backend& backend) {
  const auto time_per_token = [](const PlannedRun& planned) {
    const step::StepConfig& step = planned.config.step;
    return cost::step_time(planned.step.program, cost::nominal_cpu(),
                           step.global_batch / step.micro_batch)
               .count /
           static_cast<double>(step.global_batch * step.sequence_length);
  };
  const double unchanged = time_per_token(run);
  std::vector<planner::WhatIf> all;
  const auto consider = [&](std::string setting, const auto& change) {
    config::Config config = run.config;
    change(config);
    const PlannedRun changed = plan_run(config, backend);
    all.push_back({std::move(setting), changed.memory.arena, time_per_token(changed) / unchanged});
  };
  const step::StepConfig& step = run.config.step;
  std::set<int64_t> micro_batches;  // the largest smaller one, about half, and the smallest
  for (const int64_t most : {step.micro_batch - 1, step.micro_batch / 2, int64_t{1}}) {
    int64_t micro = most;
    while (micro > 1 && step.global_batch % micro != 0) --micro;
    if (micro >= 1 && micro < step.micro_batch) micro_batches.insert(micro);
  }
  for (const int64_t micro : micro_batches) {
    consider(fmt::format("step.micro_batch = {}", micro),
             [&](config::Config& c) { c.step.micro_batch = micro; });
  }
  if (step.sequence_length > 128) {
    const int64_t half = step.sequence_length / 2;
    consider(fmt::format("step.sequence_length = {}", half),
             [&](config::Config& c) { c.step.sequence_length = half; });
  }
  if (step.checkpointing != "full") {
    consider("step.checkpointing = \"full\"",
             [](config::Config& c) { c.step.checkpointing = "full"; });
  }
  if (step.precision == step::Precision::fp32) {
    consider("step.precision = \"bf16\"",
             [](config::Config& c) { c.step.precision = step::Precision::bf16; });
  }
  if (step.head_chunk > 64) {
    consider("step.head_chunk = 64", [](config::Config& c) { c.step.head_chunk = 64; });
  }
  if (const int64_t tokens = step.micro_batch * step.sequence_length;
      tokens > 2048 && step.ffn_chunk == 0) {
    consider("step.ffn_chunk = 1024", [](config::Config& c) { c.step.ffn_chunk = 1024; });
  }
  if (run.config.recipe.name != step::Recipe::none && run.config.recipe.cache_weights) {
    if (run.config.recipe.bf16_weights) {
      consider("recipe.bf16_weights = false",
               [](config::Config& c) { c.recipe.bf16_weights = false; });
    }
    consider("recipe.cache_weights = false", [](config::Config& c) {
      c.recipe.cache_weights = false;
      c.recipe.bf16_weights = true;
    });
  }
  if (const step::OptimizerConfig& optimizer = run.config.optimizer;
      optimizer.moments == step::Moments::fp32 && step::decays_in_bf16(optimizer.beta1) &&
      step::decays_in_bf16(optimizer.beta2)) {
    consider("optimizer.moments = \"bf16\"",
             [](config::Config& c) { c.optimizer.moments = step::Moments::bf16; });
  }
  if (run.config.checkpoint.in_background) {
    consider("checkpoint.in_background = false",
             [](config::Config& c) { c.checkpoint.in_background = false; });
  }
  return all;
}

void require_fit(const PlannedRun& run, const runtime::Backend& backend) {
  if (run.memory.arena <= run.capacity) return;
  throw planner::does_not_fit(run.view(), what_ifs(run, backend));
}

}  // namespace plimsoll::train
