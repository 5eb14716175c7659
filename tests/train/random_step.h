// Random small models, and two micro-steps of one: what the tests of the passes compare.
#pragma once

#include <rapidcheck.h>

#include "plimsoll/train/training_state.h"
#include "tests/model/random_features.h"
#include "tests/train/step_under_test.h"

namespace plimsoll::train {

// Heads of at least `columns`, an even number below 18.
inline model::ModelConfig random_model(int64_t columns = 2) {
  model::ModelConfig model;
  model.layers = *rc::gen::inRange<int64_t>(1, 4);
  model.heads = *rc::gen::element<int64_t>(1, 2, 4);
  model.head_dim = 2 * *rc::gen::inRange<int64_t>(columns / 2, 9);
  model.hidden = model.heads * model.head_dim;
  model.ffn_hidden = *rc::gen::inRange<int64_t>(1, 64);
  model.vocab = 67;
  model.max_positions = 1024;
  model.init_std = 0.2;
  model::draw_features(model);
  return model::resolve(model);
}

// Two micro-steps, so that gradients accumulate.
inline void run_micro_steps(const StepUnderTest& run) {
  initialize_weights(run.step, *run.executor, 3);
  run.executor->run(step::Phase::setup);
  for (int32_t micro = 0; micro < 2; ++micro) {
    for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
      int32_t next = micro + id;
      auto tokens = run.ids(id);
      for (int32_t& token : tokens) token = next = (next * 31 + 7) % 67;
    }
    run.executor->run_micro_step();
  }
}

}  // namespace plimsoll::train
