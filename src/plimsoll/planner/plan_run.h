// A step before its first kernel: its program and its memory plan, for a device that need not be
// here.
#pragma once

#include "plimsoll/planner/plan_report.h"
#include "plimsoll/planner/recompute.h"
#include "plimsoll/step/training_spec.h"

namespace plimsoll::planner {

// Whether a checkpoint is first copied in memory, to be written beside the compute.
enum class Snapshot : uint8_t {
  automatic,  // where the copy fits beside the rest
  yes,
  no,
};

// What is planned.
struct Request {
  step::TrainingSpec spec;  // resolved
  Snapshot snapshot = Snapshot::no;
};

// The memory there is.
struct Capacity {
  Bytes available;     // of the machine or of its limits
  Bytes reserve;       // of it, left for what is not in the arena
  std::string source;  // "MemAvailable", "train.memory_limit"
  Bytes usable() const { return reserve < available ? available - reserve : Bytes{}; }
};

// What it is planned for.
struct Target {
  step::ScratchModel scratch;
  cost::DeviceProfile profile;
  Capacity capacity;
};

struct PlannedRun {
  Request request;
  step::TrainingStep step;
  step::TensorId snapshot = -1;  // where a checkpoint is copied to be written from; -1: none
  Bytes host_snapshot;           // the same in the memory of the host, beside a device
  step::MemoryPlan memory;
  std::string device;
  Capacity capacity;
  Bytes limit;  // what the arena may take: the usable capacity, or a budget below it
  std::string limit_source;
  Bytes without_checkpointing;  // the arena when nothing is recomputed
  Seconds time_per_token;       // predicted

  PlanView view() const;
};

// Builds and sizes the step. The same function serves `plan` and `train`, so what is printed is
// what is allocated. A budget that cannot be kept gives the smallest arena that was found, above
// `limit`. Raises Exit::usage for a policy that does not exist and for sizes that nothing holds.
PlannedRun plan_run(const Request& request, const Target& target);

// The arena of that plan, without a snapshot that is only made where it fits; when that is above
// what the target holds, a lower bound of it.
Bytes arena_of(const Request& request, const Target& target);

// Memory against recomputation for this request, whatever its own policy is.
std::vector<FrontPoint> frontier(const Request& request, const Target& target);

// The arena and predicted time after each of the single changes that make sense for this run.
std::vector<WhatIf> what_ifs(const PlannedRun& run, const Target& target);

// Raises Exit::does_not_fit, with the changes of single settings that would lower the arena, when
// the plan exceeds its limit.
void require_fit(const PlannedRun& run, const Target& target);

// The bytes of a copy of what a checkpoint holds: masters, moments, states of quantisers.
Bytes snapshot_bytes(const step::TrainingStep& step);

}  // namespace plimsoll::planner
