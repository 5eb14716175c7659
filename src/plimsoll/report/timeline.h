// The memory of a step over its ops, by role: the picture of a plan.
#pragma once

#include "plimsoll/report/svg.h"
#include "plimsoll/step/memory_plan.h"

namespace plimsoll::report {

// One layer a role that is ever live, one x an op, with bands for the phases and a marker at the
// peak. Heights are live bytes, so the top is what the step needs at that op.
StackedChart memory_timeline(const step::Program& program, const step::MemoryPlan& memory);

}  // namespace plimsoll::report
