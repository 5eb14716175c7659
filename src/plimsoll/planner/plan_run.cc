#include "plimsoll/planner/plan_run.h"

namespace plimsoll::planner {

namespace {

constexpr int frontier_points = 24;

step::TensorId add_snapshot(step::Program& program, Bytes size) {
  return add_tensor(program, {.name = "checkpoint.snapshot",
                              .type = {{1, (size.count + 3) / 4}, Format::i32},
                              .role = step::Role::workspace,
                              .persistent = true});
}

// The step before any of its activations is dropped, and what it may use.
PlannedRun build(const Request& request, const Target& target) {
  PlannedRun run = {.request = request, .step = step::build(request.spec)};
  const Bytes copy = snapshot_bytes(run.step);
  if (target.profile.snapshot_on_host && request.snapshot != Snapshot::no) {
    run.host_snapshot = copy;
  } else if (request.snapshot == Snapshot::yes) {
    run.snapshot = add_snapshot(run.step.program, copy);
  }
  run.device = target.scratch.device;
  run.capacity = target.capacity;
  run.limit = target.capacity.usable();
  run.limit_source = target.capacity.source;
  const std::string& policy = request.spec.step.checkpointing;
  if (policy.starts_with("budget:") && policy != "budget:auto") {
    const Bytes budget = parse_bytes(policy.substr(policy.find(':') + 1), "step.checkpointing");
    if (budget < run.limit) {
      run.limit = budget;
      run.limit_source = fmt::format("step.checkpointing = \"{}\"", policy);
    }
  }
  return run;
}

// A copy for the checkpoint, where it fits beside the rest.
void add_automatic_snapshot(PlannedRun& run, const Target& target) {
  const Bytes copy = snapshot_bytes(run.step);
  if (run.memory.arena + round_up(copy, target.profile.alignment) > run.limit) return;
  run.snapshot = add_snapshot(run.step.program, copy);
  run.memory = step::plan_memory(run.step.program, target.profile.alignment);
  run.without_checkpointing += run.memory.sizes[static_cast<size_t>(run.snapshot)];
}

double tokens_of(const step::StepConfig& step) {
  return static_cast<double>(step.global_batch) * static_cast<double>(step.sequence_length);
}

}  // namespace

Bytes snapshot_bytes(const step::TrainingStep& step) {
  constexpr int64_t alignment = 64;  // of the writer (checkpoint/writer.h)
  Bytes sum;
  const auto add = [&](step::TensorId id) {
    sum += round_up(bytes(step.program.tensor(id)), alignment);
  };
  for (const step::ParameterTensors& p : step.parameters) {
    for (const step::TensorId id : {p.master, p.m, p.v}) add(id);
  }
  if (step.quantizers.control >= 0) add(step.quantizers.control);
  for (const step::QuantizerInfo& info : step.quantizers.list) {
    if (info.state >= 0) add(info.state);
  }
  return sum;
}

PlanView PlannedRun::view() const {
  return {request.spec.model,
          request.spec.step,
          step,
          memory,
          device,
          limit,
          limit_source,
          without_checkpointing,
          step::describe(request.spec.recipe),
          capacity.reserve,
          host_snapshot};
}

PlannedRun plan_run(const Request& request, const Target& target) {
  PlannedRun run = build(request, target);
  const step::StepConfig& config = request.spec.step;
  const bool none = config.checkpointing == "none";
  if (!none) {
    Sizer sizer(run.step.program, target.scratch, target.profile);
    run.without_checkpointing = sizer.arena(std::vector<bool>(sizer.tensors()));
    const Dropped dropped = dropped_by(config.checkpointing, {.program = run.step.program,
                                                              .layers = request.spec.model.layers,
                                                              .sizer = sizer,
                                                              .capacity = run.limit});
    run.step.program = step::recompute(std::move(run.step.program), dropped.tensors);
  }
  run.step.program = step::with_workspaces(std::move(run.step.program), target.scratch);
  run.memory = step::plan_memory(run.step.program, target.profile.alignment);
  if (none) run.without_checkpointing = run.memory.arena;
  if (request.snapshot == Snapshot::automatic && !target.profile.snapshot_on_host) {
    add_automatic_snapshot(run, target);
  }
  const Seconds step = cost::step_time(run.step.program, target.profile,
                                       config.global_batch / config.micro_batch);
  run.time_per_token = {step.count / tokens_of(config)};
  return run;
}

Bytes arena_of(const Request& request, const Target& target) {
  const PlannedRun run = build(request, target);
  Sizer sizer(run.step.program, target.scratch, target.profile);
  const Dropped dropped = dropped_by(
      request.spec.step.checkpointing,
      {run.step.program, request.spec.model.layers, sizer, run.limit});
  std::vector<bool> flags(sizer.tensors());
  for (const step::TensorId id : dropped.tensors) flags[static_cast<size_t>(id)] = true;
  const Bytes bound = sizer.size(flags).arena_bound;
  return bound > run.limit ? bound : sizer.arena(flags);
}

std::vector<FrontPoint> frontier(const Request& request, const Target& target) {
  const PlannedRun run = build(request, target);
  const step::StepConfig& config = request.spec.step;
  const int64_t micro_steps = config.global_batch / config.micro_batch;
  Sizer sizer(run.step.program, target.scratch, target.profile);
  return frontier({.program = run.step.program,
                   .layers = request.spec.model.layers,
                   .sizer = sizer,
                   .capacity = run.limit},
                  cost::step_time(run.step.program, target.profile, micro_steps), micro_steps,
                  frontier_points);
}

void require_fit(const PlannedRun& run, const Target& target) {
  if (run.memory.arena <= run.limit) return;
  throw does_not_fit(run.view(), what_ifs(run, target));
}

}  // namespace plimsoll::planner
