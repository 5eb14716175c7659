// Enums whose values have names: in configs, in messages, and in tests that try every value.
//
// Such an enum has `constexpr std::string_view name(Enum)` beside it: a switch without a default,
// empty after it. A new value without a name does not compile (-Werror=switch), and the order of
// the values means nothing to a config.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll {

// Every value that has a name; the enum's type is uint8_t.
template <class Enum>
std::vector<Enum> values_of() {
  std::vector<Enum> values;
  for (int value = 0; value < 256; ++value) {
    if (!name(static_cast<Enum>(value)).empty()) values.push_back(static_cast<Enum>(value));
  }
  return values;
}

}  // namespace plimsoll
