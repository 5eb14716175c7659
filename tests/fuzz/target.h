// What the fuzz targets share. Each is a program with one function, LLVMFuzzerTestOneInput: with
// libFuzzer (preset fuzz) it is given inputs that reach more code; in other builds replay.cc gives
// it the seeds in seeds/<target>/, which include every input that once failed.
//
// The promise: whatever a file holds, reading it gives a value or an error for a person.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"

namespace plimsoll {

// A file that holds `bytes`, in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    write_all(file_, std::as_bytes(std::span(bytes)), "input");
  }
  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", file_.get()); }

 private:
  FileDescriptor file_;
};

// Runs `read`; an Error that blames the input is fine, all else ends the process.
template <class Read>
void expect_value_or_error(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const bool blames_input = error.code() == Exit::usage || error.code() == Exit::data ||
                              error.code() == Exit::does_not_fit;
    if (blames_input) return;
    std::fputs(error.message().c_str(), stderr);
    std::abort();
  }
}

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fputs(what, stderr);
  std::abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace plimsoll
