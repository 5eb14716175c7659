// The byte tokenizer: a token is a byte of the text; no training, no merges, nothing to download.
//
// Ids 0..255 are the bytes, 256 ends a text, 257..263 are reserved: a vocabulary of 264, a
// multiple of 8 so that the matrix products of the head stay aligned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::data {

inline constexpr int32_t kEndOfText = 256;
inline constexpr int32_t kByteVocabulary = 264;

// One token a byte; no special tokens are added.
std::vector<int32_t> encode(std::string_view text);

enum class SpecialTokens : uint8_t {
  drop,  // special tokens decode to nothing
  show,  // "<|end_of_text|>", "<|reserved_257|>"
};

// Raises Exit::data for an id outside 0..263, naming the id and its index.
std::string decode(std::span<const int32_t> tokens, SpecialTokens = SpecialTokens::drop);

}  // namespace plimsoll::data
