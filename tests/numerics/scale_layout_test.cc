#include "plimsoll/numerics/scale_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll {
namespace {

TEST(SwizzledOffset, IsThatOfTheBlackwellTile) {
  EXPECT_EQ(swizzled_offset(0, 0, 8), 0);
  EXPECT_EQ(swizzled_offset(1, 0, 8), 16);
  EXPECT_EQ(swizzled_offset(31, 0, 8), 496);
  EXPECT_EQ(swizzled_offset(32, 0, 8), 4);
  EXPECT_EQ(swizzled_offset(64, 0, 8), 8);
  EXPECT_EQ(swizzled_offset(96, 0, 8), 12);
  EXPECT_EQ(swizzled_offset(0, 1, 8), 1);
  EXPECT_EQ(swizzled_offset(127, 3, 8), 511);
  EXPECT_EQ(swizzled_offset(0, 4, 8), 512);
  EXPECT_EQ(swizzled_offset(128, 0, 8), 1024);
}

TEST(SwizzledOffset, GivesEveryScaleItsOwnByte) {
  for (const int64_t blocks : {1, 4, 5, 11}) {
    std::vector<bool> used(static_cast<size_t>(swizzled_bytes(300, blocks)));
    for (int64_t row = 0; row < 300; ++row) {
      for (int64_t block = 0; block < blocks; ++block) {
        const auto offset = static_cast<size_t>(swizzled_offset(row, block, blocks));
        ASSERT_LT(offset, used.size());
        ASSERT_FALSE(used[offset]) << row << ", " << block;
        used[offset] = true;
      }
    }
  }
}

TEST(SwizzledOffset, CountsPastThirtyTwoBits) {
  const int64_t rows = (int64_t{1} << 31) + 128;
  EXPECT_EQ(swizzled_offset(rows, 0, 4), rows * 4);
  EXPECT_EQ(swizzled_bytes(rows, 4), rows * 4);
}

}  // namespace
}  // namespace plimsoll
