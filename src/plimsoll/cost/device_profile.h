// How fast a device is and what it holds, as far as plans need it: data, no device.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/numerics/format.h"

namespace plimsoll::cost {

// Products by how their output is shaped: `narrow` ones have few rows or columns and are bound by
// reading the other operand.
enum class ShapeClass : uint8_t { large, narrow };
constexpr int shape_class_count = 2;
constexpr int64_t narrow_below = 32;  // rows or columns of the output

// A way to other devices.
struct Link {
  std::string name;      // "nvlink", "network"
  double bandwidth = 0;  // bytes/s in each direction
  Seconds latency;
};

// Rates that a step reaches, not peaks. `source` says where they come from; every printed
// prediction repeats it.
struct DeviceProfile {
  std::string name;
  std::string source;
  std::array<std::array<double, shape_class_count>, format_count> products = {};  // FLOP/s
  double attention = 0;    // FLOP/s of the attention kernels
  double elementwise = 0;  // FLOP/s of all other kernels
  double memory = 0;       // bytes/s of kernels that stream
  Seconds launch;          // of every op, before it begins
  std::vector<Link> links;
  Bytes capacity;              // of its memory; 0: asked from the machine
  int64_t alignment = 256;     // addresses of tensors, a power of two
  bool snapshot_on_host = false;  // a checkpoint is copied to host memory, not beside the tensors

  double product(Format format, ShapeClass shape) const {
    return products[static_cast<size_t>(format)][static_cast<size_t>(shape)];
  }
};

// What a core of a current server reaches, times two; only ratios of these matter to the choice
// of what to recompute, and being fixed they choose the same on every machine and at every resume.
DeviceProfile nominal_cpu();

}  // namespace plimsoll::cost
