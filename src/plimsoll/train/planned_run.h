// A run before its first kernel: the resolved config, the program and its memory plan.
#pragma once

#include "plimsoll/config/config.h"
#include "plimsoll/planner/plan_run.h"
#include "plimsoll/runtime/backend.h"

namespace plimsoll::train {

struct PlannedRun : planner::PlannedRun {
  config::Config config;  // resolved
};

planner::Request request_of(const config::Config& resolved);

// What the CPU of this machine would be planned with, made without a back end: plans need none.
planner::Target cpu_target(const config::Config& resolved);
// The same for a back end that is there.
planner::Target target_of(const config::Config& resolved, const runtime::Backend& backend);

PlannedRun plan_run(const config::Config& resolved, const planner::Target& target);
PlannedRun plan_run(const config::Config& resolved, const runtime::Backend& backend);

}  // namespace plimsoll::train
