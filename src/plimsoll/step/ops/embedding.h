// x[t,:] = table[token[t],:] (+ positions[t mod sequence,:])
//
// tokens (T,1) i32, table (V,h), positions (S,h) with S >= sequence  ->  x (T,h) in table's format.
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: tokens, table, [positions]   outputs: x
struct Embedding {
  static constexpr const char* kind_name = "embedding";
  int64_t sequence = 0;  // tokens per sequence; T is a multiple of it
};
OutputTypes infer(const Embedding&, InputTypes in);
void differentiate(const Embedding&, const Op&, GradientBuilder&);
Flops flops(const Embedding&, InputTypes in);

// dtable[token[t],:] += dx[t,:]; dpositions[t mod sequence,:] += dx[t,:]
// inputs: tokens, dx, dtable f32, [dpositions f32]   outputs: dtable, [dpositions], in place
struct EmbeddingBackward : NotDifferentiated {
  static constexpr const char* kind_name = "embedding_backward";
  int64_t sequence = 0;
};
OutputTypes infer(const EmbeddingBackward&, InputTypes in);
Flops flops(const EmbeddingBackward&, InputTypes in);

}  // namespace plimsoll::step
