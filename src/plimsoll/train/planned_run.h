// A run before its first kernel: the resolved config, the program and its memory plan.
#pragma once

#include "plimsoll/config/config.h"
#include "plimsoll/planner/plan_report.h"
#include "plimsoll/planner/recompute.h"
#include "plimsoll/runtime/backend.h"

namespace plimsoll::train {

struct PlannedRun {
  config::Config config;  // resolved
  step::TrainingStep step;
  step::TensorId snapshot = -1;  // where a checkpoint is copied to be written from; -1: none
  step::MemoryPlan memory;
  std::string device;
  Bytes capacity;
  std::string capacity_source;
  Bytes without_checkpointing;  // the arena with the policy "none"

  planner::PlanView view() const {
    return {config.model,
            config.step,
            step,
            memory,
            device,
            capacity,
            capacity_source,
            without_checkpointing,
            step::describe(config.recipe)};
  }
};

// Builds and sizes the step of a resolved config for `backend`. The same function serves `plan` and
// `train`, so what is printed is what is allocated.
PlannedRun plan_run(const config::Config& resolved, const runtime::Backend& backend);

// Memory against recomputation for this configuration, whatever its own policy is.
std::vector<planner::FrontPoint> frontier(const config::Config& resolved,
                                          const runtime::Backend& backend);

// The arena and predicted time after each of the single changes that make sense for this run.
std::vector<planner::WhatIf> what_ifs(const PlannedRun& run, const runtime::Backend& backend);

// Raises Exit::does_not_fit, with the changes of single settings that would lower the arena, when
// the plan exceeds its capacity.
void require_fit(const PlannedRun& run, const runtime::Backend& backend);

}  // namespace plimsoll::train
