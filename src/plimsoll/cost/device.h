// How fast a device is, as far as the roofline of an op needs it.
#pragma once

#include <string>

#include "plimsoll/base/units.h"
#include "plimsoll/step/program.h"

namespace plimsoll::cost {

// Rates that a step reaches, not peaks. `source` says where they come from; every printed
// prediction repeats it.
struct Device {
  std::string name;
  std::string source;
  double f32_matmul = 0;   // FLOP/s of large products
  double bf16_matmul = 0;  // FLOP/s of large products with bf16 operands
  double attention = 0;    // FLOP/s of the attention kernels
  double memory = 0;       // bytes/s of kernels that stream
};

// What a core of a current server reaches, times two; only ratios of these matter to the choice
// of what to recompute, and being fixed they choose the same on every machine and at every resume.
Device nominal_cpu();

// Williams, Waterman & Patterson 2009, "Roofline": the longer of computing and moving the data.
Seconds op_time(const step::Program& program, const step::Op& op, const Device& device);

// The sum over the ops of the micro-steps and the optimizer of one step.
Seconds step_time(const step::Program& program, const Device& device, int64_t micro_steps);

}  // namespace plimsoll::cost
