// Rotary position embedding, in place on the query and key heads.
//
// With d = head_dim, i < d/2, p = t mod sequence and the pair (a, b) = (x[i], x[i + d/2]) of a
// head:
//   a' = a cos - b sin,  b' = b cos + a sin,  angle(p, i) = p * frequency(i)
// Su et al. 2021, "RoFormer", in the half-split layout of Llama's Hugging Face code. The
// frequencies, and the amplitude of sine and cosine that some scalings have, are model/rope.h's.
#pragma once

#include "plimsoll/model/rope.h"
#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// The table of angles, made once: columns [0, d/2) hold cos, [d/2, d) hold sin.
// inputs: none   outputs: table (sequence, head_dim) f32
struct RopeTable : NotDifferentiated {
  static constexpr const char* kind_name = "rope_table";
  model::RopeConfig rope;
  int64_t head_dim = 0;
  int64_t sequence = 0;
};
OutputTypes infer(const RopeTable&, InputTypes in);
Flops flops(const RopeTable&, InputTypes in);

// Rotates the first `heads` heads of every row; `inverse` rotates back, keeping the amplitude,
// which is the gradient. inputs: x (T, >= heads * head_dim), table   outputs: x in place
struct Rope {
  static constexpr const char* kind_name = "rope";
  int64_t heads = 0;  // query heads + key heads
  int64_t head_dim = 0;
  int64_t sequence = 0;
  bool inverse = false;
};
OutputTypes infer(const Rope&, InputTypes in);
void differentiate(const Rope&, const Op&, GradientBuilder&);
Flops flops(const Rope&, InputTypes in);

}  // namespace plimsoll::step
