#include "plimsoll/data/token_source.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace {

template <class T>
T load(const uint8_t* data, int64_t token) {
  T id;
  std::memcpy(&id, data + token * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return id;
}

// Calls `use` with a value of the unsigned type that the ids are stored as.
template <class Use>
auto with_id_type(const TokenSource& source, Use use) {
  switch (source.bytes_per_token()) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    default:
      return use(uint32_t{});
  }
}

struct IdScan {
  int64_t first_outside = -1;  // token index; -1: all are inside
  uint32_t largest = 0;
};

// The largest of a chunk is a loop that vectorises; only a chunk with a bad id is searched.
template <class T>
IdScan scan(const uint8_t* data, int64_t count, int64_t vocabulary) {
  constexpr int64_t chunk = int64_t{1} << 16;
  const int64_t chunks = (count + chunk - 1) / chunk;
  uint32_t largest = 0;
  int64_t first_chunk = chunks;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(min : first_chunk)
  for (int64_t c = 0; c < chunks; ++c) {
    T most = 0;
    const int64_t end = std::min(count, (c + 1) * chunk);
    for (int64_t i = c * chunk; i < end; ++i) most = std::max(most, load<T>(data, i));
    largest = std::max<uint32_t>(largest, most);
    if (most >= vocabulary) first_chunk = std::min(first_chunk, c);
  }
  IdScan result{.largest = largest};
  if (first_chunk < chunks) {
    result.first_outside = first_chunk * chunk;
    while (load<T>(data, result.first_outside) < vocabulary) ++result.first_outside;
  }
  return result;
}

bool ends_in_gz(const std::filesystem::path& path) { return path.extension() == ".gz"; }

}  // namespace

void TokenSource::read(int64_t begin, std::span<int32_t> out) const {
  const int64_t count = static_cast<int64_t>(out.size());
  check(begin >= 0 && count <= size() - begin, "tokens to read lie within their source");
  with_id_type(*this, [&](auto type) {
    const uint8_t* const first = data() + begin * bytes_per_token();
    for (int64_t i = 0; i < count; ++i) {
      out[static_cast<size_t>(i)] = static_cast<int32_t>(load<decltype(type)>(first, i));
    }
  });
}

std::string TokenSource::place(int64_t token) const {
  return fmt::format("token {} (byte {}{})", token,
                     layout_.header_bytes + token * layout_.bytes_per_token,
                     file_.decompressed ? " of the decompressed data" : "");
}

TokenSource open_tokens(const std::filesystem::path& path, std::string_view format) {
  const std::optional<TokenFormat> named = parse_format(format);
  FileBytes file = map_file(path);
  if (is_gzip(file.bytes) && (named != TokenFormat::nanogpt || ends_in_gz(path))) {
    file = decompress(path);
  }
  const TokenLayout layout =
      parse_layout(path, file.bytes, named ? *named : detect_format(path, file.bytes));
  if (layout.count == 0) {
    throw Error(Exit::data, fmt::format("{}: holds no tokens.", path.string()),
                "Name a file that holds text or tokens.");
  }
  return {path, std::move(file), layout};
}

void check_vocabulary(const TokenSource& source, int64_t vocabulary) {
  const IdScan ids = with_id_type(source, [&](auto type) {
    using Id = decltype(type);
    // Ids of 32 bits must also be positive as int32.
    const int64_t limit = std::min<int64_t>(vocabulary, int64_t{1} << 31);
    if (limit > int64_t{std::numeric_limits<Id>::max()}) return IdScan{};
    return scan<Id>(source.data(), source.size(), limit);
  });
  if (ids.first_outside < 0) return;
  const uint32_t id = with_id_type(source, [&](auto type) {
    return uint32_t{load<decltype(type)>(source.data(), ids.first_outside)};
  });
  std::string advice = fmt::format(
      "The largest id is {}: set model.vocab = {} or more, or use the tokenizer of this model.",
      ids.largest, int64_t{ids.largest} + 1);
  if (source.format() == TokenFormat::nanogpt) {
    advice += "\nIf the file does not hold raw uint16 tokens, say so with data.format.";
  }
  throw Error(Exit::data,
              fmt::format("{}: {} has id {}, outside the vocabulary of {}.", source.path().string(),
                          source.place(ids.first_outside), id, vocabulary),
              std::move(advice));
}

}  // namespace plimsoll::data
