// Which activations to keep: policies of activation checkpointing, and the choice under a budget.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/cost/device.h"
#include "plimsoll/step/memory_plan.h"
#include "plimsoll/step/passes/recompute.h"

namespace plimsoll::planner {

// The outputs of one forward op that are saved together: dropped and recomputed as one.
struct SavedGroup {
  std::vector<step::TensorId> tensors;
  int layer = -1;
  std::string name;           // without the layer: "mlp.gate_up.out"
  std::string op_kind;        // of the op that makes it
  bool enters_layer = false;  // the residual stream at a layer's start: policy "full" keeps it
  Bytes bytes;
  Seconds recompute;  // to make it again from what is kept when everything else is
};

// In forward order.
std::vector<SavedGroup> saved_groups(const step::Program& program, const cost::Device& device);

// The order in which groups are best dropped: most bytes for each second of recomputation first; of
// equal ones the early layers first, since what the backward reads at once frees nothing at the
// peak. Costs are additive, so every prefix is optimal up to one group (docs/checkpointing.md).
std::vector<size_t> drop_order(const std::vector<SavedGroup>& groups);

// "none", "full", "layers:K", "selective:NAMES", "budget:BYTES", "budget:auto" as a set of dropped
// tensors. `size` gives the arena of a program, workspaces included; `capacity` is what
// budget:auto may use. Raises Exit::usage for an unknown policy or name (lists them), a budget
// below the minimum (says the minimum and what sets it), and a policy that drops nothing.
struct PolicyContext {
  const step::Program& program;
  int64_t layers;  // of the model
  cost::Device device;
  std::function<Bytes(const step::Program&)> size;
  Bytes capacity;
};
step::TensorSet dropped_by(const std::string& policy, const PolicyContext& context);

// One point of the front: a set of dropped tensors, its arena and its price.
struct FrontPoint {
  size_t dropped_groups = 0;  // of the drop order
  Bytes arena;
  Flops recompute;
  Seconds step;
};
// From "save everything" to "recompute everything", arenas falling, times rising.
std::vector<FrontPoint> frontier(const PolicyContext& context, int64_t micro_steps, int points);

}  // namespace plimsoll::planner
