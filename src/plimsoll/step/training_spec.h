// Everything that decides the program of a training step: no file, no device, no run.
#pragma once

#include "plimsoll/model/model_config.h"
#include "plimsoll/step/builder.h"
#include "plimsoll/step/recipe.h"
#include "plimsoll/step/step_config.h"

namespace plimsoll::step {

struct TrainingSpec {
  model::ModelConfig model;
  StepConfig step;
  RecipeConfig recipe;
  OptimizerConfig optimizer;
};

// Tokens whose logits exist at once when nobody says: f32 logits of at most 32 MiB, but at least 64
// tokens, and at most 1024 chunks a micro-batch.
int64_t derived_head_chunk(int64_t vocab, int64_t tokens);

// Raises Exit::usage, naming the keys, when the sizes of a resolved spec multiply to what no machine
// holds (their sums must fit 64 bits), or when its program would have more than `most_ops` ops.
constexpr int64_t most_ops = 400'000;
void require_plannable(const TrainingSpec&);

// The step with its passes, but for recomputation and workspaces. `spec` is resolved.
TrainingStep build(const TrainingSpec&);

}  // namespace plimsoll::step
