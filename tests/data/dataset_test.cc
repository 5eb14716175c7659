#include "plimsoll/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/data/token_writer.h"
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

TEST(Dataset, NeedsAVocabularyWhenTheFileDoesNotSayOne) {
  const Folder folder;
  const auto path = folder.write("a.bin", bytes_of(std::vector<uint16_t>{1, 2, 3, 4}));
  EXPECT_THAT(
      error_of([&] { open_dataset({.train = path, .sequence_length = 1}); }),
      AllOf(StartsWith("2: "), HasSubstr("model.vocab is not set"), HasSubstr("(nanogpt)")));
}

TEST(Dataset, RejectsFilesOfDifferentTokenizers) {
  const Folder folder;
  write_tokens(folder / "b.tokens", open_tokens(folder.write("b.txt", "abcdef")), 1000);
  EXPECT_THAT(
      error_of([&] {
        open_dataset(
            {.train = folder / "b.txt", .validation = folder / "b.tokens", .sequence_length = 2});
      }),
      AllOf(StartsWith("3: "), HasSubstr("b.tokens has a vocabulary of 1000, but"),
            HasSubstr("b.txt has one of 264")));
}

TEST(Dataset, RejectsOptionsOutOfRange) {
  const Folder folder;
  const auto text = folder.write("a.txt", "some text");
  for (const double fraction : {0.0, 1.0, -0.5, 1.5}) {
    EXPECT_THAT(
        error_of([&] {
          open_dataset({.train = text, .validation_fraction = fraction, .sequence_length = 1});
        }),
        AllOf(StartsWith("2: "), HasSubstr("is not between 0 and 1")));
  }
  EXPECT_THAT(error_of([] { open_dataset({.sequence_length = 1}); }),
              StartsWith("2: data.train is not set."));
}

}  // namespace
}  // namespace plimsoll::data
