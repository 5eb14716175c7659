// Writes plimsoll token files (token_format.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "plimsoll/data/token_source.h"

namespace plimsoll::data {

// Under a temporary name beside `path` until finish(), which syncs and renames; without finish()
// nothing is left and a former file stays as it was.
class TokenWriter {
 public:
  // Ids take 16 bits when `vocabulary` allows it, else 32. Raises Exit::data when the file cannot
  // be created, here and below with the reason of the system.
  TokenWriter(std::filesystem::path path, int64_t vocabulary);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  // Raises Exit::data for an id outside the vocabulary, naming it and its index in the file.
  void append(std::span<const int32_t> tokens);
  void finish();

 private:
  void write(std::span<const uint8_t> bytes);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int64_t vocabulary_;
  int64_t bytes_per_token_;
  int64_t count_ = 0;
  int fd_ = -1;
  std::vector<uint8_t> buffer_;
};

// Copies all tokens of `source`: text or gzip becomes a file that is mapped, not decompressed.
void write_tokens(const std::filesystem::path& path, const TokenSource& source, int64_t vocabulary);

}  // namespace plimsoll::data
