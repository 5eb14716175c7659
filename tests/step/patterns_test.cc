// The patterns that name weights in recipe.bf16_layers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/step/passes/precision.h"

namespace plimsoll::step {
namespace {

TEST(Patterns, MatchWholeNamesWithStars) {
  EXPECT_TRUE(matches("*.attention.*, layers.0.mlp.down.weight", "layers.3.attention.q.weight"));
  EXPECT_TRUE(matches("*.attention.*, layers.0.mlp.down.weight", "layers.0.mlp.down.weight"));
  EXPECT_FALSE(matches("*.attention.*, layers.0.mlp.down.weight", "layers.1.mlp.down.weight"));
  EXPECT_FALSE(matches("layers", "layers.0"));
  EXPECT_FALSE(matches("", "layers.0"));
  EXPECT_TRUE(matches("*", "layers.0"));
  EXPECT_TRUE(matches("**", ""));
}

// As the definition says: a star takes any number of letters.
bool defined(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return defined(pattern.substr(1), text) || (!text.empty() && defined(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && defined(pattern.substr(1), text.substr(1));
}

RC_GTEST_PROP(Patterns, MatchAsDefined, ()) {
  const auto text_of = [](auto letter) {
    return rc::gen::resize(11, rc::gen::container<std::string>(letter));
  };
  const auto pattern = *rc::gen::nonEmpty(text_of(rc::gen::element('a', 'b', '*')));
  const auto text = *text_of(rc::gen::element('a', 'b'));
  RC_ASSERT(matches(pattern, text) == defined(pattern, text));
}

TEST(Patterns, TakeTimeOnlyByTheirLength) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(10000, 'a')));
}

}  // namespace
}  // namespace plimsoll::step
