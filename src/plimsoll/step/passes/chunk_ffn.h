// The FFN of every layer in chunks of tokens, so that its inner activations, the widest of a layer,
// exist for one chunk at a time. Long sequences need it: at 131,072 tokens one gate_up of a small
// model is larger than all its weights.
#pragma once

#include "plimsoll/step/program.h"

namespace plimsoll::step {

// Rewrites a differentiated program. Every FFN runs chunk after chunk of `tokens` rows; its
// backward computes the inner activations of each chunk again (Phase::recompute) from the FFN's
// input, just before it uses them. Run it before checkpoint(), which then treats what is left.
// A rest of less than an eighth of a chunk joins the last one. The program is returned as it is
// when a micro-step has no more than `tokens`, or for 0.
//
// Gradients of weights are sums over the chunks in order. With our own matrix products everything
// keeps its bits when `tokens` is a multiple of 256, the depth of one block of these sums, but for
// the bias of the FFN's first product, which is summed in other blocks.
Program chunk_ffn(Program program, int64_t tokens);

}  // namespace plimsoll::step
