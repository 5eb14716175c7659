// What divides a number: the values that messages offer and searches try.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll {

// The divisors of `number` > 0, ascending, 1 and itself included.
inline std::vector<int64_t> divisors_of(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace plimsoll
