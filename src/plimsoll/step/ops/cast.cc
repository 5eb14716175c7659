#include "plimsoll/step/ops/cast.h"

namespace plimsoll::step {

OutputTypes infer(const Cast& kind, InputTypes in) {
  check(in.size() == 1 && in[0].format == Format::f32, "cast takes an f32 tensor");
  return {{{in[0].shape, kind.to}}};
}

Flops flops(const Cast&, InputTypes) { return {}; }

}  // namespace plimsoll::step
