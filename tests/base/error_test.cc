#include "plimsoll/base/error.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Error, PrintsTheSentenceThenEveryLineOfAdviceIndented) {
  const Error error(Exit::usage, "a.toml:3: model.heads = 0 is out of range.", "Use 8.\nOr 16.");
  EXPECT_EQ(error.message(), "a.toml:3: model.heads = 0 is out of range.\n  Use 8.\n  Or 16.");
  EXPECT_EQ(error.code(), Exit::usage);
}

TEST(Error, WithoutAdviceIsOneLine) {
  EXPECT_EQ(Error(Exit::data, "The file ends early.").message(), "The file ends early.");
}

TEST(Check, RaisesABugWithWhatWasBroken) {
  EXPECT_NO_THROW(check(true, "the arena overlaps"));
  try {
    check(false, "the arena overlaps");
    FAIL() << "a broken invariant passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bug);
    EXPECT_STREQ(error.what(), "Internal error: the arena overlaps.");
    EXPECT_FALSE(error.advice().empty());
  }
}

TEST(Nearest, FindsTheNameWithTheFewestEdits) {
  const std::vector<std::string> names = {"steps", "seed", "threads"};
  EXPECT_EQ(nearest("stepz", names), "steps");
  EXPECT_EQ(nearest("sed", names), "seed");
  EXPECT_EQ(nearest("thread", names), "threads");
}

TEST(Nearest, IsEmptyWhenNothingIsClose) {
  EXPECT_EQ(nearest("checkpointing", {"steps", "seed"}), "");
  EXPECT_EQ(nearest("x", {"ab", "lr"}), "") << "no letter in common is not close";
  EXPECT_EQ(nearest("lr", {}), "");
}

}  // namespace
}  // namespace plimsoll
