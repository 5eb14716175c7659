// What a plan says: bytes by role, the largest tensors, the arena, FLOPs per token; as text for a
// person and as JSON for a tool. And what it says when it does not fit.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/step/builder.h"
#include "plimsoll/step/memory_plan.h"

namespace plimsoll::planner {

// Everything a report reads; nothing here is computed twice.
struct PlanView {
  const model::ModelConfig& model;
  const step::StepConfig& config;
  const step::TrainingStep& step;
  const step::MemoryPlan& memory;
  std::string device;           // "cpu: 2 threads, ..."
  Bytes capacity;               // bytes the arena may take, the reserve taken off
  std::string capacity_source;  // "MemAvailable", "train.memory_limit"
  Bytes without_checkpointing;  // the arena with the policy "none"
  std::string recipe;           // step::describe; empty without one
  Bytes reserve = {};           // of the machine's memory, left for what is not in the arena
  Bytes host_snapshot = {};     // of checkpoints, in the memory of the host beside a device
};

// A tensor, or the same tensor of several layers, at the step's peak.
struct LiveTensor {
  std::string name;  // "layers.*.mlp.gate_up.out"
  step::Role role;
  int count = 1;  // layers
  Bytes bytes;    // of all of them together
};

// The tensors that are live at the peak, layers merged, largest first.
std::vector<LiveTensor> largest_at_peak(const step::Program&, const step::MemoryPlan&);

// Per token: every phase's FLOPs of a step over the tokens of its global batch.
struct TokenFlops {
  double forward = 0, backward = 0, recompute = 0, optimizer = 0;
  double total() const { return forward + backward + recompute + optimizer; }
};
TokenFlops flops_per_token(const step::Program&, const step::StepConfig&);

// "backward, mat_mul of layers.31.mlp.down.out.grad (op 540 of 912)": where the peak is.
std::string peak_place(const step::Program&, const step::MemoryPlan&);

std::string plan_text(const PlanView&);
nlohmann::json plan_json(const PlanView&);

// "What if": one changed setting, the arena with it, and the predicted time of a token relative to
// the unchanged plan (1.02: two percent slower).
struct WhatIf {
  std::string setting;  // "step.micro_batch = 2"
  Bytes arena;
  double time_per_token = 1;
};

// The error for a plan that exceeds its capacity: needs, has, the largest tensors, and the three
// cheapest single changes that make it fit; when none does, the three that save most.
Error does_not_fit(const PlanView&, std::vector<WhatIf> changes);

}  // namespace plimsoll::planner
