#include "plimsoll/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

RC_GTEST_PROP(ByteTokenizer, RoundTripsEveryText, (const std::string& text)) {
  RC_ASSERT(decode(encode(text)) == text);
}

TEST(ByteTokenizer, GivesEveryByteItsOwnId) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(encode(std::string(1, static_cast<char>(byte))), std::vector<int32_t>{byte});
  }
}

TEST(ByteTokenizer, HasAVocabularyThatIsAMultipleOf8) { EXPECT_EQ(kByteVocabulary % 8, 0); }

TEST(ByteTokenizer, DropsOrShowsSpecialTokens) {
  const std::vector<int32_t> tokens = {'a', kEndOfText, 'b', 257};
  EXPECT_EQ(decode(tokens), "ab");
  EXPECT_EQ(decode(tokens, SpecialTokens::show), "a<|end_of_text|>b<|reserved_257|>");
}

TEST(ByteTokenizer, NamesAnIdItDoesNotHave) {
  EXPECT_THAT(error_of([] {
                decode(std::vector<int32_t>{1, 264});
              }),
              testing::StartsWith("3: Token 1 has id 264, which the byte tokenizer does not have"));
  EXPECT_THAT(error_of([] { decode(std::vector<int32_t>{-1}); }),
              testing::HasSubstr("Token 0 has id -1"));
}

}  // namespace
}  // namespace plimsoll::data
