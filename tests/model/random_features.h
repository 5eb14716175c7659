// Random features of a model, for property tests: every combination that `resolve` accepts.
#pragma once

#include <rapidcheck.h>

#include "plimsoll/base/names.h"
#include "plimsoll/model/model_config.h"

namespace plimsoll::model {

template <class Enum>
Enum any_of() {
  return *rc::gen::elementOf(values_of<Enum>());
}

inline RopeConfig random_rope() {
  RopeConfig rope;
  rope.scaling = any_of<RopeScaling>();
  rope.theta = *rc::gen::element(100.0, 10000.0, 500000.0);
  if (rope.scaling != RopeScaling::none) {
    rope.factor = *rc::gen::element(1.0, 2.0, 8.0);
    rope.original_positions = *rc::gen::inRange<int64_t>(1, 5000);
  }
  return rope;
}

// heads and head_dim are given; head_dim is even.
inline void draw_features(ModelConfig& model) {
  model.family = any_of<Family>();
  if (*rc::gen::arbitrary<bool>()) model.norm = any_of<Norm>();
  if (*rc::gen::arbitrary<bool>()) model.positions = any_of<Positions>();
  if (*rc::gen::arbitrary<bool>()) model.activation = any_of<Activation>();
  for (std::optional<bool>* bias : {&model.qkv_bias, &model.output_bias, &model.mlp_bias}) {
    if (*rc::gen::arbitrary<bool>()) *bias = *rc::gen::arbitrary<bool>();
  }
  model.query_groups =
      model.heads % 2 == 0 ? *rc::gen::element(model.heads / 2, model.heads) : model.heads;
  model.tied_head = *rc::gen::arbitrary<bool>();
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.rope = random_rope();
}

}  // namespace plimsoll::model
