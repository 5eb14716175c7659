// Why a step needs the memory it needs: what is live at the peak, by role, layer and tensor, and
// what single changes of the configuration would do to it.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/planner/plan_report.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {

// The answer as text: where the peak is, bytes by role and by layer, the largest tensors, and one
// line a what-if. `rates` says where predicted times come from.
std::string explain_text(const planner::PlanView& plan, const std::vector<planner::WhatIf>& changes,
                         const std::string& rates);

// The memory timeline with a note at every op: the op, the live bytes and the largest tensors.
StackedChart explained_timeline(const step::Program& program, const step::MemoryPlan& memory);

// The same as a page of its own, with the timeline's notes under the pointer.
std::string explain_html(const planner::PlanView& plan, const std::vector<planner::WhatIf>& changes,
                         const std::string& rates);

}  // namespace plimsoll::report
