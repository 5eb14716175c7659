// What must not reach the TOML parser: it recurses into values, and into the tables that dotted keys
// make, as deep as the text says, and toml++ 3.3 is undefined for some letters in bare keys.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::config {

// Raises Exit::usage with "<source>:<line>" when brackets nest deeper than 16, a key has more than 16
// parts, or a letter outside ASCII stands outside strings and comments. Configurations need none.
void check_toml(std::string_view toml, const std::string& source);

}  // namespace plimsoll::config
