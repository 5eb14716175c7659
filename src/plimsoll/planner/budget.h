// What to drop so that a step is fastest within a number of bytes.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/planner/recompute.h"

namespace plimsoll::planner {

// The groups to drop, as flags; empty when the arena is above `budget` whatever is dropped, in
// which case `least` is the smallest arena that was found, by dropping `least_dropped`.
//
// In a decoder layer a dropped tensor costs its own op once, so costs and bytes add up nearly, and
// layers repeat: a bounded knapsack. The shortest prefix of drop_order that fits is the start; from
// there single groups are exchanged as long as that lowers the predicted time. Candidates are sized
// by what must live at once; those that seem to fit are placed, so the result does. The number of
// candidates and the work on them (Sizer::work) are bounded. Deterministic.
struct BudgetChoice {
  std::optional<std::vector<bool>> dropped;
  Bytes least;
  std::vector<bool> least_dropped;
};
BudgetChoice fit_budget(Bytes budget, const std::vector<SavedGroup>& groups, Sizer& sizer);

}  // namespace plimsoll::planner
