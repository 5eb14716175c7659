// Commands that a person copies from what Plimsoll prints.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll {

// One word for a POSIX shell: as it is when no character means anything to the shell, otherwise in
// single quotes.
std::string shell_quoted(std::string_view word);

}  // namespace plimsoll
