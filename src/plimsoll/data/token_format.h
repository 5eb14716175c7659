// How token files are laid out, and how a file's format is recognised. All numbers are
// little-endian.
//
//   text      every byte is a token of the byte tokenizer (tokenizer.h)
//   llmc      llm.c: 256 int32 (magic, version, count, 0...), then the ids; magic 20240520
//             version 1 has uint16 ids (GPT-2), magic 20240801 version 7 uint32 (Llama 3)
//   nanogpt   nanoGPT: uint16 ids, no header
//   plimsoll  8 bytes "PLIMTOK\n", u32 version (1), u32 bits (16 or 32), u64 count,
//             u64 vocabulary, then the ids
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::data {

enum class TokenFormat : uint8_t { text, llmc, nanogpt, plimsoll };

std::string_view name(TokenFormat format);

// What data.format may say: "auto", then every name.
std::vector<std::string> format_names();

// "auto" is nullopt. Raises Exit::usage for an unknown name, with the nearest and all known ones.
std::optional<TokenFormat> parse_format(std::string_view name);

// Where the ids are in a file's bytes.
struct TokenLayout {
  TokenFormat format = TokenFormat::text;
  int64_t header_bytes = 0;
  int64_t bytes_per_token = 1;
  int64_t count = 0;       // tokens
  int64_t vocabulary = 0;  // 0: the file does not say; text: the byte tokenizer's
};

// How much of the beginning of a file its format is judged by.
inline constexpr int64_t kBeginningBytes = int64_t{1} << 16;

// The format of a file when nobody names it: by magic, else nanogpt when `path` ends in .bin (or
// .bin.gz), else text. Raises Exit::data for bytes that cannot be text (a NUL near the beginning).
TokenFormat detect_format(const std::filesystem::path& path, std::span<const uint8_t> beginning);

// Reads and checks the header of a file of `size` bytes. Raises Exit::data: wrong magic, truncated
// header, unsupported version or bits, a count that does not match the size (both are named), an
// odd nanogpt size, nanogpt ids that are in fact of 4 or 8 bytes (every other one of 2 is 0).
TokenLayout parse_layout(const std::filesystem::path& path, std::span<const uint8_t> beginning,
                         int64_t size, TokenFormat format);

inline constexpr std::string_view kPlimsollMagic = "PLIMTOK\n";
inline constexpr uint32_t kPlimsollVersion = 1;
inline constexpr int64_t kPlimsollHeaderBytes = 32;

}  // namespace plimsoll::data
