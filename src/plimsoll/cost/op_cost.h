// What an op takes on a device: one overload an op kind, as with flops; a kind without one does not
// compile.
#pragma once

#include "plimsoll/cost/device_profile.h"
#include "plimsoll/step/program.h"

namespace plimsoll::cost {

// Which of a device's rates bounds an op's arithmetic.
struct Work {
  enum class Unit : uint8_t { product, attention, elementwise };
  Unit unit = Unit::elementwise;
  Format format = Format::f32;  // of a product's operands
  ShapeClass shape = ShapeClass::large;
};
Work work(const step::Program&, const step::Op&);

// Williams, Waterman & Patterson 2009, "Roofline": the longer of computing and moving the data,
// after the launch.
Seconds op_time(const step::Program& program, const step::Op& op, const DeviceProfile& device);

// The sum over the ops of the micro-steps and the optimizer of one step.
Seconds step_time(const step::Program& program, const DeviceProfile& device, int64_t micro_steps);

}  // namespace plimsoll::cost
