#include "plimsoll/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/data/tokenizer.h"
#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Dataset, TakesTheEndOfTheTrainFileForValidation) {
  const Folder folder;
  const Dataset dataset = open_dataset({.train = folder.write("a.txt", std::string(1000, 'a')),
                                        .validation_fraction = 0.1,
                                        .sequence_length = 10});
  EXPECT_EQ(dataset.train.begin, 0);
  EXPECT_EQ(dataset.train.end, 900);
  EXPECT_EQ(dataset.validation.begin, 900);
  EXPECT_EQ(dataset.validation.end, 1000);
  EXPECT_EQ(dataset.vocabulary, kByteVocabulary);
}

TEST(Dataset, TakesTheWholeOfASeparateValidationFile) {
  const Folder folder;
  const Dataset dataset = open_dataset({.train = folder.write("a.txt", "train text"),
                                        .validation = folder.write("b.txt", "validation"),
                                        .sequence_length = 4,
                                        .vocabulary = 300});
  EXPECT_EQ(dataset.train.tokens(), 10);
  EXPECT_EQ(dataset.validation.tokens(), 10);
  EXPECT_EQ(dataset.vocabulary, 300);
  std::vector<int32_t> tokens(4), targets(4);
  dataset.validation.read_window(1, tokens, targets);
  EXPECT_EQ(tokens, encode("dati"));
  EXPECT_EQ(targets, encode("atio"));
}

RC_GTEST_PROP(Dataset, WindowsNeverCrossTheBorderOfASplit, ()) {
  // Every token tells its place: the id is its index in the file.
  const Folder folder;
  const auto size = *rc::gen::inRange<int64_t>(40, 2000);
  const auto sequence_length = *rc::gen::inRange<int64_t>(1, 9);
  const double fraction = *rc::gen::inRange(25, 76) / 100.0;
  std::vector<uint16_t> ids(static_cast<size_t>(size));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i);
  const Dataset dataset = open_dataset({.train = folder.write("a.bin", bytes_of(ids)),
                                        .validation_fraction = fraction,
                                        .sequence_length = sequence_length,
                                        .vocabulary = size});
  RC_ASSERT(dataset.train.end == dataset.validation.begin);
  RC_ASSERT(dataset.train.tokens() + dataset.validation.tokens() == size);
  std::vector<int32_t> tokens(static_cast<size_t>(sequence_length)), targets(tokens);
  for (const Split& split : {dataset.train, dataset.validation}) {
    int64_t next = split.begin;
    for (int64_t w = 0; w < split.windows(sequence_length); ++w) {
      split.read_window(w, tokens, targets);
      for (size_t i = 0; i < tokens.size(); ++i, ++next) {
        RC_ASSERT(tokens[i] == next);
        RC_ASSERT(targets[i] == next + 1);
        RC_ASSERT(targets[i] < split.end);
      }
    }
    // No whole window is wasted.
    RC_ASSERT(split.end - next <= sequence_length);
  }
}

TEST(Dataset, SaysHowManyTokensASplitLacks) {
  const Folder folder;
  const auto text = folder.write("a.txt", std::string(1000, 'a'));
  EXPECT_THAT(error_of([&] { open_dataset({.train = text, .sequence_length = 256}); }),
              AllOf(StartsWith("3: "),
                    HasSubstr("the validation split has 10 tokens, but one sequence of 256 and its "
                              "target need 257."),
                    HasSubstr("data.validation_fraction = 0.26 or more"),
                    HasSubstr("step.sequence_length = 9 or less")));
  EXPECT_THAT(error_of([&] { open_dataset({.train = text, .sequence_length = 1024}); }),
              HasSubstr("the train split has 990 tokens, but one sequence of 1024 and its target "
                        "need 1025."));
  EXPECT_THAT(
      error_of([&] {
        open_dataset(
            {.train = text, .validation = folder.write("b.txt", "ab"), .sequence_length = 2});
      }),
      HasSubstr("b.txt: the validation split has 2 tokens"));
}

TEST(Dataset, TheAdvisedFractionWorks) {
  const Folder folder;
  const auto text = folder.write("a.txt", std::string(1000, 'a'));
  EXPECT_EQ(error_of([&] {
              open_dataset({.train = text, .validation_fraction = 0.26, .sequence_length = 256});
            }),
            "no error");
}

TEST(Dataset, ChecksTheIdsOfBothFiles) {
  const Folder folder;
  const auto good = folder.write("good.bin", bytes_of(std::vector<uint16_t>{1, 2, 3, 4}));
  const auto bad = folder.write("bad.bin", bytes_of(std::vector<uint16_t>{1, 2, 3, 9}));
  const auto error = [&](const auto& train, const auto& validation) {
    return error_of([&] {
      open_dataset(
          {.train = train, .validation = validation, .sequence_length = 2, .vocabulary = 9});
    });
  };
  EXPECT_EQ(error(good, good), "no error");
  EXPECT_THAT(error(good, bad), HasSubstr("bad.bin: token 3 (byte 6) has id 9"));
  EXPECT_THAT(error(bad, good), HasSubstr("bad.bin: token 3 (byte 6) has id 9"));
}

TEST(Dataset, FindsABadIdOfALargeFileWhenItIsRead) {
  const Folder folder;
  // 80 MiB of ids, a hole in the file: neither end is wrong.
  const auto path = folder.write("large.bin", bytes_of(std::vector<uint16_t>{1, 2, 3, 4}));
  const int64_t tokens = int64_t{40} << 20;
  std::filesystem::resize_file(path, static_cast<uintmax_t>(2 * tokens));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * (tokens / 2 + 5));
    file.write("\x09", 1);
  }
  const Dataset dataset = open_dataset({.train = path, .sequence_length = 4, .vocabulary = 9});
  std::vector<int32_t> ids(4), targets(4);
  dataset.train.read_window(0, ids, targets);
  EXPECT_EQ(targets, (std::vector<int32_t>{2, 3, 4, 0}));
  const int64_t window = tokens / 8;  // its second token
  const auto error = [&](int64_t w) {
    return error_of([&] { dataset.train.read_window(w, ids, targets); });
  };
  EXPECT_EQ(error(window), "no error");
  EXPECT_THAT(error(window + 1),
              AllOf(StartsWith("3: "),
                    HasSubstr(fmt::format("large.bin: token {} (byte {}) has id 9, outside the "
                                          "vocabulary of 9.",
                                          tokens / 2 + 5, tokens + 10))));
}

TEST(Dataset, DoesNotGuessTheWidthOfRawIdsOfALargeVocabulary) {
  const Folder folder;
  const auto path = folder.write("a.bin", bytes_of(std::vector<uint16_t>(300, 5)));
  const auto error = [&](const std::string& format, int64_t vocabulary) {
    return error_of([&] {
      open_dataset(
          {.train = path, .format = format, .sequence_length = 1, .vocabulary = vocabulary});
    });
  };
  EXPECT_THAT(error("auto", 65537), AllOf(StartsWith("2: "), HasSubstr("of 2 or of 4 bytes"),
                                          HasSubstr("data.format = \"nanogpt\"")));
  EXPECT_EQ(error("auto", 65536), "no error");
  EXPECT_EQ(error("nanogpt", 65537), "no error");
}

TEST(Dataset, CountsTheMemoryOfDecompressedFiles) {
  const Folder folder;
  const auto train = folder.write_gzip("a.gz", std::string(1000, 'x'));
  const auto validation = folder.write_gzip("b.gz", std::string(500, 'x'));
  const auto open = [&](const std::filesystem::path& second, int64_t most) {
    return open_dataset({.train = train,
                         .validation = second,
                         .validation_fraction = 0.5,
                         .sequence_length = 8,
                         .most = {most}})
        .resident()
        .count;
  };
  EXPECT_EQ(open({}, 1000), 1000);
  EXPECT_EQ(open(validation, 1500), 1500);
  EXPECT_THAT(error_of([&] { open(validation, 1499); }),
              AllOf(StartsWith("4: "), HasSubstr("b.gz")));
}

TEST(Dataset, NeedsAVocabularyWhenTheFileDoesNotSayOne) {
  const Folder folder;
  const auto path = folder.write("a.bin", bytes_of(std::vector<uint16_t>{1, 2, 3, 4}));
  EXPECT_THAT(
      error_of([&] { open_dataset({.train = path, .sequence_length = 1}); }),
      AllOf(StartsWith("2: "), HasSubstr("model.vocab is not set"), HasSubstr("(nanogpt)")));
}

TEST(Dataset, RejectsFilesOfDifferentTokenizers) {
  const Folder folder;
  folder.write("b.txt", "abcdef");
  folder.write("b.tokens", plimsoll_file({1, 2, 3, 4, 5, 6}, 1000));
  EXPECT_THAT(
      error_of([&] {
        open_dataset(
            {.train = folder / "b.txt", .validation = folder / "b.tokens", .sequence_length = 2});
      }),
      AllOf(StartsWith("3: "), HasSubstr("b.tokens has a vocabulary of 1000, but"),
            HasSubstr("b.txt has one of 264")));
}

TEST(Dataset, HoldsNothingOutForAFractionOfZero) {
  const Folder folder;
  const Dataset dataset = open_dataset({.train = folder.write("a.txt", "some text"),
                                        .validation_fraction = 0,
                                        .sequence_length = 4});
  EXPECT_EQ(dataset.train.tokens(), 9);
  EXPECT_EQ(dataset.validation.tokens(), 0);
}

TEST(Dataset, RejectsOptionsOutOfRange) {
  const Folder folder;
  const auto text = folder.write("a.txt", "some text");
  for (const double fraction : {1.0, -0.5, 1.5}) {
    EXPECT_THAT(
        error_of([&] {
          open_dataset({.train = text, .validation_fraction = fraction, .sequence_length = 1});
        }),
        AllOf(StartsWith("2: "), HasSubstr("is not from 0 to below 1")));
  }
  EXPECT_THAT(error_of([] { open_dataset({.sequence_length = 1}); }),
              StartsWith("2: data.train is not set."));
}

}  // namespace
}  // namespace plimsoll::data
