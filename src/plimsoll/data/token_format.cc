#include "plimsoll/data/token_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/data/corpus_file.h"
#include "plimsoll/data/tokenizer.h"

namespace plimsoll::data {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie");

namespace {

namespace fs = std::filesystem;
using ByteSpan = std::span<const uint8_t>;

constexpr int64_t kLlmcHeaderBytes = 256 * 4;

struct LlmcVariant {
  uint32_t magic;
  uint32_t version;
  int64_t bytes_per_token;
};
constexpr std::array<LlmcVariant, 2> kLlmcVariants = {{{20240520, 1, 2}, {20240801, 7, 4}}};

constexpr std::array<std::pair<std::string_view, TokenFormat>, 4> kNames = {
    {{"text", TokenFormat::text},
     {"llmc", TokenFormat::llmc},
     {"nanogpt", TokenFormat::nanogpt},
     {"plimsoll", TokenFormat::plimsoll}}};

constexpr const char* kWiderIds =
    "Write them as an llm.c file: 256 int32 (20240801, 7, the number of ids, 0, 0, ...), then the "
    "ids as uint32.";

// The number at `offset`; zeros beyond the end, so that a magic can be looked for in any file.
template <class T>
T number_at(ByteSpan bytes, size_t offset) {
  T value = 0;
  if (offset < bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, std::min(sizeof(T), bytes.size() - offset));
  }
  return value;
}

const LlmcVariant* llmc_variant(ByteSpan bytes) {
  const uint32_t magic = number_at<uint32_t>(bytes, 0);
  const auto found = std::find_if(kLlmcVariants.begin(), kLlmcVariants.end(),
                                  [&](const LlmcVariant& known) { return known.magic == magic; });
  return found == kLlmcVariants.end() ? nullptr : &*found;
}

bool has_plimsoll_magic(ByteSpan bytes) {
  return bytes.size() >= kPlimsollMagic.size() &&
         std::memcmp(bytes.data(), kPlimsollMagic.data(), kPlimsollMagic.size()) == 0;
}

void check_header_is_whole(const fs::path& path, int64_t size, TokenFormat format,
                           int64_t header_bytes) {
  if (size >= header_bytes) return;
  bad_file(
      path,
      fmt::format("the {} header is cut off: {} bytes of {}", name(format), size, header_bytes),
      "The file was written or copied only in part; make or copy it again.");
}

void check_version(const fs::path& path, TokenFormat format, uint32_t version, uint32_t supported) {
  if (version == supported) return;
  bad_file(path,
           fmt::format("{} token file of version {}; this program reads version {}", name(format),
                       version, supported),
           "Write the file again with a matching version of the tool that made it.");
}

// `count` is what the header says; 64 bits unsigned, so a damaged one cannot overflow below.
void check_count(const fs::path& path, int64_t size, const TokenLayout& layout, uint64_t count) {
  const uint64_t body = static_cast<uint64_t>(size - layout.header_bytes);
  const uint64_t width = static_cast<uint64_t>(layout.bytes_per_token);
  if (body % width == 0 && body / width == count) return;
  bad_file(
      path,
      fmt::format("the header says {} tokens of {} bytes, but {} bytes ({} tokens{}) follow it",
                  count, width, body, body / width,
                  body % width == 0 ? "" : fmt::format(" and {} bytes", body % width)),
      "The file was written or copied only in part, or changed since; make or copy it again.");
}

TokenLayout parse_llmc(const fs::path& path, ByteSpan bytes, int64_t size) {
  const LlmcVariant* const variant = llmc_variant(bytes);
  if (variant == nullptr) {
    bad_file(
        path,
        fmt::format("not an llm.c token file: it begins with {}, not with the magic {} or {}",
                    number_at<uint32_t>(bytes, 0), kLlmcVariants[0].magic, kLlmcVariants[1].magic),
        "Set data.format = \"nanogpt\" for raw uint16 tokens without a header, or \"auto\".");
  }
  TokenLayout layout{TokenFormat::llmc, kLlmcHeaderBytes, variant->bytes_per_token};
  check_header_is_whole(path, size, layout.format, layout.header_bytes);
  check_version(path, layout.format, number_at<uint32_t>(bytes, 4), variant->version);
  layout.count = number_at<uint32_t>(bytes, 8);
  check_count(path, size, layout, static_cast<uint64_t>(layout.count));
  return layout;
}

// Whether every other id is 0: the upper halves of ids of 4 or 8 bytes.
bool are_wider_ids(ByteSpan bytes) {
  constexpr size_t enough = 64;  // ids; fewer may be zero by chance
  const size_t pairs = bytes.size() / 4;
  bool any = false;
  for (size_t i = 0; i < pairs; ++i) {
    if (number_at<uint16_t>(bytes, 4 * i + 2) != 0) return false;
    any |= number_at<uint16_t>(bytes, 4 * i) != 0;
  }
  return any && 2 * pairs >= enough;
}

TokenLayout parse_nanogpt(const fs::path& path, ByteSpan bytes, int64_t size) {
  if (size % 2 != 0) {
    bad_file(path, fmt::format("{} bytes are an odd size for nanogpt's uint16 tokens", size),
             "The file is cut off, or of another kind: set data.format, for example to \"text\".");
  }
  if (are_wider_ids(bytes)) {
    bad_file(path, "every other uint16 is 0: these are ids of 4 or 8 bytes, not nanogpt's of 2",
             kWiderIds);
  }
  return {TokenFormat::nanogpt, 0, 2, size / 2};
}

TokenLayout parse_plimsoll(const fs::path& path, ByteSpan bytes, int64_t size) {
  if (!has_plimsoll_magic(bytes)) {
    bad_file(path, "not a plimsoll token file: it does not begin with \"PLIMTOK\\n\"",
             "Set data.format = \"auto\", or the format it was written in.");
  }
  check_header_is_whole(path, size, TokenFormat::plimsoll, kPlimsollHeaderBytes);
  check_version(path, TokenFormat::plimsoll, number_at<uint32_t>(bytes, 8), kPlimsollVersion);
  const uint32_t bits = number_at<uint32_t>(bytes, 12);
  if (bits != 16 && bits != 32) {
    bad_file(path, fmt::format("the header says {} bits a token, which is neither 16 nor 32", bits),
             "The header is damaged; make or copy the file again.");
  }
  const uint64_t vocabulary = number_at<uint64_t>(bytes, 24);
  if (vocabulary > uint64_t{1} << 31) {
    bad_file(path, fmt::format("the header says a vocabulary of {}, more than 2^31", vocabulary),
             "The header is damaged; make or copy the file again.");
  }
  TokenLayout layout{TokenFormat::plimsoll, kPlimsollHeaderBytes, bits / 8};
  check_count(path, size, layout, number_at<uint64_t>(bytes, 16));
  layout.count = static_cast<int64_t>(number_at<uint64_t>(bytes, 16));
  layout.vocabulary = static_cast<int64_t>(vocabulary);
  return layout;
}

// Whether `path` ends in .bin, beside a .gz.
bool is_named_bin(fs::path path) {
  if (path.extension() == ".gz") path.replace_extension();
  return path.extension() == ".bin";
}

}  // namespace

std::string_view name(TokenFormat format) {
  for (const auto& [text, known] : kNames) {
    if (known == format) return text;
  }
  return "?";
}

std::vector<std::string> format_names() {
  std::vector<std::string> names = {"auto"};
  for (const auto& [known, format] : kNames) names.emplace_back(known);
  return names;
}

std::optional<TokenFormat> parse_format(std::string_view text) {
  if (text == "auto") return std::nullopt;
  for (const auto& [known, format] : kNames) {
    if (known == text) return format;
  }
  const std::vector<std::string> names = format_names();
  const std::string similar = nearest(text, names);
  throw Error(Exit::usage,
              fmt::format("data.format = \"{}\" is not a format of token files.", text),
              fmt::format("{}Known: {}.",
                          similar.empty() ? "" : fmt::format("Did you mean \"{}\"? ", similar),
                          fmt::join(names, ", ")));
}

TokenFormat detect_format(const fs::path& path, ByteSpan beginning) {
  if (has_plimsoll_magic(beginning)) return TokenFormat::plimsoll;
  if (llmc_variant(beginning) != nullptr) return TokenFormat::llmc;
  if (is_named_bin(path)) return TokenFormat::nanogpt;
  const auto nul = std::find(beginning.begin(), beginning.end(), uint8_t{0});
  if (nul != beginning.end()) {
    bad_file(
        path,
        fmt::format("neither a known token file nor text: byte {} is NUL", nul - beginning.begin()),
        "Set data.format = \"nanogpt\" for raw uint16 tokens, or \"text\" to train on its bytes.\n"
        "Convert archives, Parquet files and UTF-16 text to plain UTF-8 text first.");
  }
  return TokenFormat::text;
}

TokenLayout parse_layout(const fs::path& path, ByteSpan beginning, int64_t size,
                         TokenFormat format) {
  switch (format) {
    case TokenFormat::llmc:
      return parse_llmc(path, beginning, size);
    case TokenFormat::nanogpt:
      return parse_nanogpt(path, beginning, size);
    case TokenFormat::plimsoll:
      return parse_plimsoll(path, beginning, size);
    case TokenFormat::text:
      break;
  }
  return {TokenFormat::text, 0, 1, size, kByteVocabulary};
}

}  // namespace plimsoll::data
