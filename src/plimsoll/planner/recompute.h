// Which activations to keep: the policies of step.checkpointing, as sets of dropped tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/planner/sizer.h"
#include "plimsoll/base/error.h"
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
std::vector<SavedGroup> saved_groups(const step::Program& program, Sizer& sizer);

// The tensors of the groups that are flagged, as flags by tensor.
std::vector<bool> tensors_of(const std::vector<SavedGroup>& groups, const std::vector<bool>& flags,
                             size_t tensors);

// The order in which groups are best dropped: most bytes for each second of recomputation first; of
// equal ones the early layers first, since what the backward reads at once frees nothing at the
// peak. Costs and bytes add up nearly, so its prefixes are near the best (docs/checkpointing.md).
std::vector<size_t> drop_order(const std::vector<SavedGroup>& groups);

// What a policy says to drop. When a budget is not reached whatever is dropped, `least` is the
// smallest arena that was found and `tensors` are what it drops.
struct Dropped {
  step::TensorSet tensors;
  std::optional<Bytes> least;
};

// "none", "full", "layers:K", "selective:NAMES", "budget:BYTES", "budget:auto". `capacity` is what
// budget:auto may use. Raises Exit::usage for an unknown policy or name (lists them).
struct PolicyContext {
  const step::Program& program;
  int64_t layers;  // of the model
  Sizer& sizer;
  Bytes capacity;
};
Dropped dropped_by(const std::string& policy, const PolicyContext& context);

// One point of the front: a set of dropped tensors, its arena and its price.
struct FrontPoint {
  size_t dropped_groups = 0;  // of the drop order
  Bytes arena;
  Flops recompute;
  Seconds step;
};
// From "save everything" to "recompute everything", arenas falling, times rising.
// `kept`: the step when nothing is dropped.
std::vector<FrontPoint> frontier(const PolicyContext& context, Seconds kept, int64_t micro_steps,
                                 int points);

}  // namespace plimsoll::planner
