#include "plimsoll/data/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace plimsoll::data {
namespace {

std::string whole(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  for (const char byte : bytes) text += stream.push(std::string_view(&byte, 1));
  return text + stream.finish();
}

TEST(Utf8, LeavesValidTextAsItIs) {
  const std::string text = "a\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(whole(text), text);
}

TEST(Utf8, ReplacesEachLongestBeginningOfACharacter) {
  // The example of the Unicode standard, table 3-8.
  EXPECT_EQ(whole("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"),
            "a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd");
  EXPECT_EQ(whole("\xc0\xaf"), "\ufffd\ufffd");            // overlong
  EXPECT_EQ(whole("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(whole("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(whole("x\xe2\x82"), "x\ufffd");
}

RC_GTEST_PROP(Utf8, MakesAnyBytesValid, (const std::string& bytes)) {
  const std::string text = whole(bytes);
  RC_ASSERT(whole(text) == text);
  // The library's own check: it refuses to write what is no UTF-8.
  RC_ASSERT(nlohmann::json::parse(nlohmann::json(text).dump()).get<std::string>() == text);
}

}  // namespace
}  // namespace plimsoll::data
