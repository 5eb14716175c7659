// Files that a person names on the command line, where a pipe, a terminal or a device may stand for
// a file: `plimsoll plan <(make_config)`, `--html /dev/stdout`.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "plimsoll/base/units.h"

namespace plimsoll {

// The whole text of a regular file, or of a pipe or device up to its end. Raises FileError for a
// folder, for more than `most` bytes, and for a pipe whose other end gives nothing for `patience`.
std::string read_input(const std::filesystem::path& path, Bytes most,
                       std::chrono::milliseconds patience = std::chrono::seconds(10));

// Replaces a regular file whole, as write_file_atomically does, through the links that lead to it;
// a pipe, terminal or device is written to as it is. Raises FileError.
void write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace plimsoll
