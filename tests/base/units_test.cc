#include "plimsoll/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(Units, BytesPrintInBinaryUnitsWithOneDecimal) {
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(Bytes{512}), "512 B");
  EXPECT_EQ(to_text(Bytes{1023}), "1023 B");
  EXPECT_EQ(to_text(Bytes{1536}), "1.5 KiB");
  EXPECT_EQ(to_text(Bytes{(int64_t{1} << 20) - 1}), "1.0 MiB");
  EXPECT_EQ(to_text(Bytes{31 * (int64_t{1} << 29)}), "15.5 GiB");
  EXPECT_EQ(to_text(Bytes{int64_t{1} << 52}), "4096.0 TiB");
  EXPECT_EQ(to_text(Bytes{-1536}), "-1.5 KiB");
}

TEST(Units, FlopsPrintInDecimalUnits) {
  EXPECT_EQ(to_text(Flops{12}), "12 FLOP");
  EXPECT_EQ(to_text(Flops{1.5e6}), "1.5 MFLOP");
  EXPECT_EQ(to_text(Flops{2.1e9}), "2.1 GFLOP");
  EXPECT_EQ(to_text(Flops{3e21}), "3000.0 EFLOP");
}

TEST(Units, SecondsPrintInTheUnitAPersonWouldUse) {
  EXPECT_EQ(to_text(Seconds{0.00025}), "250 us");
  EXPECT_EQ(to_text(Seconds{0.83}), "830 ms");
  EXPECT_EQ(to_text(Seconds{12.34}), "12.3 s");
  EXPECT_EQ(to_text(Seconds{250}), "4 min 10 s");
  EXPECT_EQ(to_text(Seconds{11100}), "3 h 05 min");
}

TEST(Units, SecondsNeverRoundUpToAFullNextUnit) {
  EXPECT_EQ(to_text(Seconds{0.0009996}), "1 ms");
  EXPECT_EQ(to_text(Seconds{0.9996}), "1.0 s");
  EXPECT_EQ(to_text(Seconds{59.96}), "1 min 00 s");
  EXPECT_EQ(to_text(Seconds{3599.6}), "1 h 00 min");
}

TEST(Units, CountsPrintWithThreeDigits) {
  EXPECT_EQ(to_count_text(0), "0");
  EXPECT_EQ(to_count_text(999), "999");
  EXPECT_EQ(to_count_text(51000), "51.0k");
  EXPECT_EQ(to_count_text(124439808), "124.4M");
  EXPECT_EQ(to_count_text(1.236e9), "1.24B");
  EXPECT_EQ(to_count_text(999.6e6), "1.00B");
}

TEST(Units, SizesAreReadInEveryUnit) {
  EXPECT_EQ(parse_bytes("1536", "k").count, 1536);
  EXPECT_EQ(parse_bytes("1536 B", "k").count, 1536);
  EXPECT_EQ(parse_bytes("1.5 KiB", "k").count, 1536);
  EXPECT_EQ(parse_bytes("800MiB", "k").count, int64_t{800} << 20);
  EXPECT_EQ(parse_bytes("1.5 GiB", "k").count, int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2 TiB", "k").count, int64_t{2} << 40);
  EXPECT_EQ(parse_bytes("2GB", "k").count, 2000000000);
  EXPECT_EQ(parse_bytes("0", "k").count, 0);
}

TEST(Units, WhatIsNotASizeIsRefusedWithTheKey) {
  for (const char* text :
       {"", "GiB", "-1 GiB", "12 gigs", "1 GiB 2", "nan", "inf GiB", "1e300", "9300000000 GiB"}) {
    try {
      const Bytes bytes = parse_bytes(text, "train.memory_limit");
      ADD_FAILURE() << '"' << text << "\" was read as " << bytes.count;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      EXPECT_EQ(error.what(), fmt::format("train.memory_limit = \"{}\" is not a size.", text));
    }
  }
}

RC_GTEST_PROP(Units, PrintedBytesReadBackWithinTheRoundingOfOneDecimal, ()) {
  const int64_t count = *rc::gen::inRange<int64_t>(0, int64_t{1} << 49);
  const std::string text = to_text(Bytes{count});
  const auto back = static_cast<double>(parse_bytes(text, "k").count);
  RC_ASSERT(std::abs(back - static_cast<double>(count)) <= 0.051 * static_cast<double>(count));
}

RC_GTEST_PROP(Units, RoundUpIsTheSmallestMultipleNotBelow, ()) {
  const int64_t count = *rc::gen::inRange<int64_t>(0, int64_t{1} << 40);
  const int64_t alignment = int64_t{1} << *rc::gen::inRange(0, 20);
  const int64_t rounded = round_up(Bytes{count}, alignment).count;
  RC_ASSERT(rounded % alignment == 0);
  RC_ASSERT(rounded >= count);
  RC_ASSERT(rounded - count < alignment);
}

}  // namespace
}  // namespace plimsoll
