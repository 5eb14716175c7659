// A file of tokens, open for reading in any order.
//
// Files are memory-mapped, so opening is immediate and a corpus may be larger than memory; gzip
// (and dictzip) files are decompressed to memory once, whatever their format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/units.h"
#include "plimsoll/data/file_bytes.h"
#include "plimsoll/data/token_format.h"

namespace plimsoll::data {

// A value; copies share the file, the last one closes it. Reading is safe from many threads.
class TokenSource {
 public:
  TokenSource() = default;  // no tokens
  TokenSource(std::filesystem::path path, FileBytes file, TokenLayout layout)
      : path_(std::move(path)), file_(std::move(file)), layout_(layout) {}

  int64_t size() const { return layout_.count; }  // tokens
  TokenFormat format() const { return layout_.format; }
  // As the file says; 0 when it does not (llmc, nanogpt); 264 for text.
  int64_t vocabulary() const { return layout_.vocabulary; }
  const std::filesystem::path& path() const { return path_; }
  // Memory held for the tokens: 0 when mapped, else the decompressed bytes.
  Bytes resident() const { return file_.resident(); }

  // Tokens [begin, begin + out.size()), which must lie within [0, size()).
  void read(int64_t begin, std::span<int32_t> out) const;

  // The ids as they lie: size() little-endian numbers of bytes_per_token() bytes.
  const uint8_t* data() const { return file_.bytes.data() + layout_.header_bytes; }
  int64_t bytes_per_token() const { return layout_.bytes_per_token; }
  // "token 7 (byte 1038)", for messages.
  std::string place(int64_t token) const;

 private:
  std::filesystem::path path_;
  FileBytes file_;
  TokenLayout layout_;
};

// `format`: "auto", "text", "llmc", "nanogpt" or "plimsoll". gzip is seen by its first bytes, save
// for "nanogpt", where they could be tokens: there the name must end in .gz.
// Raises what file_bytes.h and token_format.h say.
TokenSource open_tokens(const std::filesystem::path& path, std::string_view format = "auto");

// Raises Exit::data unless every id is below `vocabulary`, naming the first one that is not, its
// token index and byte, and the largest id. Scans in parallel, at about the speed of memory;
// not at all when the ids are too narrow to be wrong.
void check_vocabulary(const TokenSource& source, int64_t vocabulary);

}  // namespace plimsoll::data
