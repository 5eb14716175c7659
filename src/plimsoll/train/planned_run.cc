#include "plimsoll/train/planned_run.h"

#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

PlannedRun plan_run(const Config& config, const runtime::Backend& backend) {
  PlannedRun run;
  run.config = config;
  run.step = step::build_training_step(config.model, config.step, config.optimizer);
  step::Program& program = run.step.program;
  if (config.checkpoint.in_background) {
    const Bytes size = snapshot_bytes(run.step);
    run.snapshot = add_tensor(program, {.name = "checkpoint.snapshot",
                                        .type = {{1, (size.count + 3) / 4}, Format::i32},
                                        .role = step::Role::workspace,
                                        .persistent = true});
  }
  program = add_workspaces(std::move(program), [&](const step::Program& p, const step::Op& op) {
    return backend.workspace(p, op);
  });
  run.memory = step::plan_memory(program);
  run.device = backend.description();
  if (config.train.memory_limit.empty()) {
    const auto [bytes, source] = backend.capacity();
    run.capacity = bytes;
    run.capacity_source = source;
  } else {
    run.capacity = parse_bytes(config.train.memory_limit, "train.memory_limit");
    run.capacity_source = "train.memory_limit";
  }
  return run;
}

void require_fit(const PlannedRun& run, const runtime::Backend& backend) {
  if (run.memory.arena <= run.capacity) return;
  std::vector<planner::Change> changes;
  const auto consider = [&](std::string setting, Config changed) {
    changes.push_back({std::move(setting), plan_run(changed, backend).memory.arena});
  };
  const Config& config = run.config;
  if (config.step.micro_batch > 1) {
    // The largest smaller micro-batch that divides the global batch, and the smallest there is.
    int64_t micro = config.step.micro_batch - 1;
    while (config.step.global_batch % micro != 0) --micro;
    for (const int64_t m : {micro, int64_t{1}}) {
      Config changed = config;
      changed.step.micro_batch = m;
      consider(fmt::format("step.micro_batch = {}", m), changed);
      if (micro == 1) break;
    }
  }
  if (config.step.sequence_length > 128) {
    Config changed = config;
    changed.step.sequence_length /= 2;
    consider(fmt::format("step.sequence_length = {}", changed.step.sequence_length), changed);
  }
  if (config.step.precision == step::Precision::fp32) {
    Config changed = config;
    changed.step.precision = step::Precision::bf16;
    consider("step.precision = \"bf16\"", changed);
  }
  if (config.step.head_chunk > 64) {
    Config changed = config;
    changed.step.head_chunk = 64;
    consider("step.head_chunk = 64", changed);
  }
  if (config.checkpoint.in_background) {
    Config changed = config;
    changed.checkpoint.in_background = false;
    consider("checkpoint.in_background = false", changed);
  }
  throw planner::does_not_fit(run.view(), std::move(changes));
}

}  // namespace plimsoll::train
