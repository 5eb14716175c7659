// y = x rounded to another number format, nearest even: the compute copy of a master weight.
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

// inputs: x f32   outputs: y in `to`
struct Cast : NotDifferentiated {
  static constexpr const char* kind_name = "cast";
  Format to = Format::bf16;
};
OutputTypes infer(const Cast&, InputTypes in);
Flops flops(const Cast&, InputTypes in);

}  // namespace plimsoll::step
