#include "plimsoll/data/tokenizer.h"

#include "plimsoll/base/error.h"

namespace plimsoll::data {

std::vector<int32_t> encode(std::string_view text) {
  std::vector<int32_t> tokens(text.size());
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<uint8_t>(text[i]);
  return tokens;
}

std::string decode(std::span<const int32_t> tokens, SpecialTokens special) {
  std::string text;
  text.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id < 0 || id >= kByteVocabulary) {
      throw Error(
          Exit::data,
          fmt::format("Token {} has id {}, which the byte tokenizer does not have (0 to {}).", i,
                      id, kByteVocabulary - 1),
          "Decode with the tokenizer the tokens were made with.");
    }
    if (id < kEndOfText) {
      text += static_cast<char>(id);
    } else if (special == SpecialTokens::show) {
      text += id == kEndOfText ? "<|end_of_text|>" : fmt::format("<|reserved_{}|>", id);
    }
  }
  return text;
}

}  // namespace plimsoll::data
