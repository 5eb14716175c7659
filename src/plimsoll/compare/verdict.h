// What the statistics of a comparison mean: the verdict on a recipe, its reason, and warnings.
#pragma once

#include "plimsoll/compare/comparison.h"

namespace plimsoll::compare {

// Fills in all that `one` says beside one.recipe and one.paired; of `comparison`, the settings, the
// control and the noise floor must be known.
void judge(RecipeComparison& one, const Comparison& comparison);

}  // namespace plimsoll::compare
