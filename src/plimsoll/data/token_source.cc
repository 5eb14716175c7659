#include "plimsoll/data/token_source.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace {

constexpr int64_t kCheckedBytes = int64_t{32} << 20;  // at either end of a file, when it is opened
constexpr int64_t kBlock = int64_t{1} << 16;          // tokens

// Widens ids of T that lie at the end of `out` to int32 at its beginning, one after the other: the
// place an id is written to has been read before.
template <class T>
void widen(std::span<int32_t> out) {
  const std::span<std::byte> bytes = std::as_writable_bytes(out);
  const std::byte* from = bytes.data() + bytes.size() - out.size() * sizeof(T);
  for (int32_t& id : out) {
    T narrow;
    std::memcpy(&narrow, from, sizeof(T));
    from += sizeof(T);
    id = static_cast<int32_t>(narrow);
  }
}

uint32_t largest_of(std::span<const int32_t> ids) {
  uint32_t largest = 0;
  for (const int32_t id : ids) largest = std::max(largest, static_cast<uint32_t>(id));
  return largest;
}

// Index of the first id outside the vocabulary; -1 when there is none. Ids of 32 bits from 2^31 on
// are negative here.
int64_t first_outside(std::span<const int32_t> ids, int64_t vocabulary) {
  const auto limit = static_cast<uint32_t>(std::min(vocabulary, int64_t{1} << 31));
  if (largest_of(ids) < limit) return -1;  // a loop that vectorises
  return std::ranges::find_if(ids, [&](int32_t id) { return static_cast<uint32_t>(id) >= limit; }) -
         ids.begin();
}

[[noreturn]] void raise_outside(const TokenSource& source, int64_t token, uint32_t id,
                                uint32_t largest, int64_t vocabulary) {
  std::string advice = fmt::format(
      "The largest id is {}: set model.vocab = {} or more, or use the tokenizer of this model.",
      largest, int64_t{largest} + 1);
  if (source.format() == TokenFormat::nanogpt) {
    advice += "\nIf the file does not hold raw uint16 tokens, say so with data.format.";
  }
  throw Error(Exit::data,
              fmt::format("{}: {} has id {}, outside the vocabulary of {}.", source.path().string(),
                          source.place(token), id, vocabulary),
              std::move(advice));
}

bool ends_in_gz(const std::filesystem::path& path) {
  return path.extension() == ".gz" || path.extension() == ".dz";
}

}  // namespace

void TokenSource::read(int64_t begin, std::span<int32_t> out) const {
  check(begin >= 0 && static_cast<int64_t>(out.size()) <= size() - begin,
        "tokens to read lie within their source");
  const auto width = static_cast<size_t>(layout_.bytes_per_token);
  const std::span<uint8_t> all(reinterpret_cast<uint8_t*>(out.data()), out.size_bytes());
  file_.read(layout_.header_bytes + begin * layout_.bytes_per_token, all.last(out.size() * width));
  if (width == 1) widen<uint8_t>(out);
  if (width == 2) widen<uint16_t>(out);
}

void check_ids(const TokenSource& source, int64_t begin, std::span<const int32_t> ids,
               int64_t vocabulary) {
  const int64_t bad = first_outside(ids, vocabulary);
  if (bad < 0) return;
  raise_outside(source, begin + bad, static_cast<uint32_t>(ids[static_cast<size_t>(bad)]),
                largest_of(ids), vocabulary);
}

std::string TokenSource::place(int64_t token) const {
  return fmt::format("token {} (byte {}{})", token,
                     layout_.header_bytes + token * layout_.bytes_per_token,
                     file_.is_decompressed() ? " of the decompressed data" : "");
}

TokenSource open_tokens(const std::filesystem::path& path, std::string_view format, Bytes most) {
  const std::optional<TokenFormat> named = parse_format(format);
  CorpusFile file(path);
  std::vector<uint8_t> beginning = file.beginning(kBeginningBytes);
  if (is_gzip(beginning) && (named != TokenFormat::nanogpt || ends_in_gz(path))) {
    file = file.decompressed(most);
    beginning = file.beginning(kBeginningBytes);
  } else if (ends_in_gz(path)) {
    bad_file(path, "is named as gzip but does not begin as gzip data",
             "It is damaged or of another kind: get it again, or rename it.");
  }
  const TokenLayout layout =
      parse_layout(path, beginning, file.size(), named ? *named : detect_format(path, beginning));
  if (layout.count == 0) {
    throw Error(Exit::data, fmt::format("{}: holds no tokens.", path.string()),
                "Name a file that holds text or tokens.");
  }
  return {path, std::move(file), layout};
}

void check_vocabulary(const TokenSource& source, int64_t vocabulary) {
  if (source.bytes_per_token() < 4 && vocabulary >= int64_t{1} << (8 * source.bytes_per_token())) {
    return;  // no id of this width is outside
  }
  const int64_t part = kCheckedBytes / source.bytes_per_token();
  int64_t bad = -1;
  uint32_t bad_id = 0, largest = 0;
  std::vector<int32_t> block(static_cast<size_t>(kBlock));
  for (int64_t begin = 0; begin < source.size();) {
    if (begin >= part && begin < source.size() - part) begin = source.size() - part;
    const std::span<int32_t> ids(block.data(),
                                 static_cast<size_t>(std::min(kBlock, source.size() - begin)));
    source.read(begin, ids);
    largest = std::max(largest, largest_of(ids));
    if (const int64_t at = first_outside(ids, vocabulary); at >= 0 && bad < 0) {
      bad = begin + at;
      bad_id = static_cast<uint32_t>(ids[static_cast<size_t>(at)]);
    }
    begin += static_cast<int64_t>(ids.size());
  }
  if (bad >= 0) raise_outside(source, bad, bad_id, largest, vocabulary);
}

}  // namespace plimsoll::data
