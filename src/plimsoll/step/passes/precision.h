// The precision pass: the three products of linear layers in a reduced-precision recipe.
//
//   forward          y  = q(x) * q(W)^T            blocks along the inputs of the layer
//   input gradient   dx = q(dy) * q(W^T)^T         blocks along its outputs
//   weight gradient  dW += q(dy^T) * q(x^T)^T      blocks along the tokens
//
// Both copies of a matrix are made from its bf16 values. Of the input only the copy along the
// tokens is kept for the backward. Weights are quantised once an optimizer step and kept, unless
// the recipe says otherwise. Embedding, head, norms and attention stay as they are.
#pragma once

#include "plimsoll/step/builder.h"
#include "plimsoll/step/recipe.h"

namespace plimsoll::step {

// Rewrites a differentiated bf16 step; run it after chunk_ffn and before checkpoint. The step is
// returned as it is for Recipe::none. Fills TrainingStep::quantizers.
TrainingStep apply_recipe(TrainingStep step, const RecipeConfig& recipe, int64_t layers);

// Whether `name` matches one of the comma-separated `patterns`, in which * stands for any text.
bool matches(const std::string& patterns, const std::string& name);

}  // namespace plimsoll::step
