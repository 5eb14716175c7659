// Cross-entropy of a chunk of tokens, with the gradient of the logits made on the way.
//
// loss[t] = log(sum_v exp(logits[t,v])) - logits[t,target[t]]      (nats)
// dlogits[t,v] = scale * (softmax(logits[t,:])[v] - [v == target[t]])
// A target of -1 counts for nothing: its loss is 0 and so is its row of dlogits.
//
// The head and this op run chunk after chunk of tokens, so the logits of all tokens never exist
// at once (builder.cc).
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: logits (C,V) f32, targets (C,1) i32, scale (1,1) f32 = 1 / counted targets of the step
// outputs: losses (C,1) f32, dlogits (C,V): over logits when `gradient` is f32, else its own tensor
// Differentiated by hand where it is built: the gradient is already an output.
struct CrossEntropy : NotDifferentiated {
  static constexpr const char* kind_name = "cross_entropy";
  Format gradient = Format::f32;
};
OutputTypes infer(const CrossEntropy&, InputTypes in);
Flops flops(const CrossEntropy&, InputTypes in);

// What SumLosses adds up over the micro-steps, as the bits of a (1,4) i32 tensor.
struct LossTotal {
  double sum = 0;       // nats
  int64_t targets = 0;  // counted: not -1
};
static_assert(sizeof(LossTotal) == 16);

// Adds the losses of a micro-step, summed in double and in order, and how many of them count.
// inputs: losses (T,1) f32, targets (T,1) i32, total (1,4) i32   outputs: total in place
struct SumLosses : NotDifferentiated {
  static constexpr const char* kind_name = "sum_losses";
};
OutputTypes infer(const SumLosses&, InputTypes in);
Flops flops(const SumLosses&, InputTypes in);

}  // namespace plimsoll::step
