// A file of tokens, open for reading in any order.
//
// Files are read where tokens are asked for, so opening is immediate and a corpus may be larger
// than memory; gzip (and dictzip) files are decompressed to memory once, whatever their format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/units.h"
#include "plimsoll/data/corpus_file.h"
#include "plimsoll/data/token_format.h"

namespace plimsoll::data {

// A value; copies share the file, the last one closes it. Reading is safe from many threads.
class TokenSource {
 public:
  TokenSource() = default;  // no tokens
  TokenSource(std::filesystem::path path, CorpusFile file, TokenLayout layout)
      : path_(std::move(path)), file_(std::move(file)), layout_(layout) {}

  int64_t size() const { return layout_.count; }  // tokens
  TokenFormat format() const { return layout_.format; }
  // As the file says; 0 when it does not (llmc, nanogpt); 264 for text.
  int64_t vocabulary() const { return layout_.vocabulary; }
  const std::filesystem::path& path() const { return path_; }
  // Memory held for the tokens: 0 when they stay in the file, else the decompressed bytes.
  Bytes resident() const { return file_.resident(); }

  int64_t bytes_per_token() const { return layout_.bytes_per_token; }

  // Tokens [begin, begin + out.size()), which must lie within [0, size()), as they are: see
  // check_ids. Raises Exit::data when the disk fails or the file has been shortened.
  void read(int64_t begin, std::span<int32_t> out) const;

  // "token 7 (byte 1038)", for messages.
  std::string place(int64_t token) const;

 private:
  std::filesystem::path path_;
  CorpusFile file_;
  TokenLayout layout_;
};

// `format`: "auto", "text", "llmc", "nanogpt" or "plimsoll". gzip is seen by its first bytes, save
// for "nanogpt", where they could be tokens: there the name must end in .gz or .dz. Decompressed,
// it may take `most` memory (Exit::does_not_fit). Raises what corpus_file.h and token_format.h say.
TokenSource open_tokens(const std::filesystem::path& path, std::string_view format = "auto",
                        Bytes most = kNoLimit);

// Raises Exit::data when one of the `ids` that were read from token `begin` on is not below
// `vocabulary`, naming the first such, its token index and byte, and the largest of them.
void check_ids(const TokenSource& source, int64_t begin, std::span<const int32_t> ids,
               int64_t vocabulary);

// The same for a file that is being opened. Looks at all ids of a file up to 64 MiB, and at 32 MiB
// at either end of a larger one: what lies between is checked when it is read, so that terabytes
// need not be read to open them.
void check_vocabulary(const TokenSource& source, int64_t vocabulary);

}  // namespace plimsoll::data
