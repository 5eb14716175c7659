// Ranges and ticks of chart axes: where an axis begins and ends, and what is written along it.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace plimsoll::report {

struct Range {
  double low = 0;
  double high = 1;
  bool operator==(const Range&) const = default;
};

enum class TickUnit {
  number,  // 0.5, 200, 20k
  bytes,   // 512 B, 200 MiB, 1.5 GiB: steps that are round in the binary unit
};

struct Tick {
  double value = 0;
  std::string text;
};

// From the smallest to the largest finite value, widened when they are equal; [0, 1] without any.
Range full_range(std::span<const double> values);

// full_range, cut where a few values lie far from all others: at three times the distance of the
// 2nd to the 98th percentile beyond those. A loss of 1e6 in step 1 must not flatten the curve.
Range robust_range(std::span<const double> values);

// Room above and below the data; starts at zero when the data almost does.
Range padded(Range range);

// Round values within the range, at most `at_most` of them and no closer than `min_step`.
std::vector<Tick> linear_ticks(Range range, int at_most, TickUnit unit = TickUnit::number,
                               double min_step = 0);

// Powers of ten within a positive range, with 2 and 5 between them over less than three decades.
std::vector<Tick> log_ticks(Range range);

}  // namespace plimsoll::report
