// The bytes of a corpus, read at any place: from the file, or from memory once decompressed.
//
// The file is read, not mapped: a corpus that is shortened while a run has it open is an error with
// the place, where a mapping would end the process with SIGBUS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/files.h"
#include "plimsoll/base/units.h"

namespace plimsoll::data {

inline constexpr Bytes kNoLimit = {std::numeric_limits<int64_t>::max()};

// What a gzip file holds, in pieces: it grows without being copied, so that reading it never takes
// more memory than the text.
class Decompressed {
 public:
  int64_t size() const { return size_; }
  void read(int64_t offset, std::span<uint8_t> out) const;

  // Where the next bytes go, at least one; `grow` then says how many came.
  std::span<uint8_t> room();
  void grow(size_t count) { size_ += static_cast<int64_t>(count); }

 private:
  static constexpr int64_t kPiece = int64_t{1} << 22;
  std::vector<std::unique_ptr<uint8_t[]>> pieces_;
  int64_t size_ = 0;
};

// A value; copies share the file. Reading is safe from many threads.
class CorpusFile {
 public:
  CorpusFile() = default;  // no bytes
  // Raises Exit::data: missing (names the nearest file beside it), a folder, a pipe or a device,
  // unreadable, empty.
  explicit CorpusFile(const std::filesystem::path& path);

  int64_t size() const;
  // Fills `out`, which must lie within the file. Raises Exit::data when the disk fails or the file
  // has been shortened.
  void read(int64_t offset, std::span<uint8_t> out) const;
  // The first bytes, at most `count`.
  std::vector<uint8_t> beginning(int64_t count) const;

  // The same, once the gzip members that the file is made of are decompressed to memory. Raises
  // Exit::data for whatever is damaged or cut off, with the byte; zeros after the last member pass.
  // Raises Exit::does_not_fit when the text is longer than `most`.
  CorpusFile decompressed(Bytes most = kNoLimit) const;
  bool is_decompressed() const { return text_ != nullptr; }

  // Memory the process holds for them: what is read from the file counts as none.
  Bytes resident() const { return {text_ ? text_->size() : 0}; }

 private:
  std::shared_ptr<const InputFile> file_;
  std::shared_ptr<const Decompressed> text_;  // instead of the file's own bytes
};

// Whether `bytes` begin as a gzip member with deflate (RFC 1952); dictzip files do.
bool is_gzip(std::span<const uint8_t> bytes);

// Raises Exit::data: "<path>: <problem>." and what to do.
[[noreturn]] void bad_file(const std::filesystem::path& path, const std::string& problem,
                           std::string advice);

}  // namespace plimsoll::data
