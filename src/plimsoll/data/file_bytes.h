// The bytes of a file as one span: memory-mapped, or decompressed to memory when it is gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "plimsoll/base/units.h"

namespace plimsoll::data {

// A value; copies share the mapping, the last one unmaps it.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const uint8_t> bytes;
  bool decompressed = false;  // `bytes` are in memory, offsets are not offsets in the file

  // Memory the process holds for them: a mapping is the kernel's page cache and counts as none.
  Bytes resident() const { return {decompressed ? static_cast<int64_t>(bytes.size()) : 0}; }
};

// Maps `path` for reading. The file must not shrink while it is mapped.
// Raises Exit::data: missing (names the nearest file beside it), a directory or another thing that
// is not a regular file, unreadable, empty.
FileBytes map_file(const std::filesystem::path& path);

// Whether `bytes` begin as a gzip member with deflate (RFC 1952); dictzip files do.
bool is_gzip(std::span<const uint8_t> bytes);

// Decompresses all members of the gzip file `path`.
// Raises Exit::data for corrupt or truncated data with the place, and for empty contents.
FileBytes decompress(const std::filesystem::path& path);

// Raises Exit::data: "<path>: <problem>." and what to do.
[[noreturn]] void bad_file(const std::filesystem::path& path, const std::string& problem,
                           std::string advice);

}  // namespace plimsoll::data
