// Cross-entropy of a chunk of tokens, with the gradient of the logits made on the way.
//
// loss[t] = log(sum_v exp(logits[t,v])) - logits[t,target[t]]      (nats)
// dlogits[t,v] = scale * (softmax(logits[t,:])[v] - [v == target[t]])
//
// The head and this op run chunk after chunk of tokens, so the logits of all tokens never exist
// at once (builder.cc).
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: logits (C,V) f32, targets (C,1) i32
// outputs: losses (C,1) f32, dlogits (C,V): over logits when `gradient` is f32, else its own tensor
// Differentiated by hand where it is built: the gradient is already an output.
struct CrossEntropy : NotDifferentiated {
  static constexpr const char* kind_name = "cross_entropy";
  float scale = 1;  // 1 / tokens of the global batch
  Format gradient = Format::f32;
};
OutputTypes infer(const CrossEntropy&, InputTypes in);
Flops flops(const CrossEntropy&, InputTypes in);

}  // namespace plimsoll::step
