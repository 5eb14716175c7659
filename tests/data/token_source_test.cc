#include "plimsoll/data/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "plimsoll/data/tokenizer.h"
#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

using testing::HasSubstr;

std::vector<int32_t> all_tokens(const TokenSource& source) {
  std::vector<int32_t> tokens(static_cast<size_t>(source.size()));
  source.read(0, tokens);
  return tokens;
}

TEST(TokenSource, ReadsTextAsBytes) {
  const Folder folder;
  const TokenSource source = open_tokens(folder.write("a.txt", "h\xc3\xa9llo"));
  EXPECT_EQ(source.format(), TokenFormat::text);
  EXPECT_EQ(source.vocabulary(), kByteVocabulary);
  EXPECT_EQ(all_tokens(source), encode("h\xc3\xa9llo"));
  EXPECT_EQ(source.resident().count, 0);
}

TEST(TokenSource, ReadsGzipTextOfSeveralMembersWhateverItsName) {
  const Folder folder;
  const std::string text(100000, 'x');
  const std::string members =
      slurp(folder.write_gzip("1.gz", text)) + slurp(folder.write_gzip("2.gz", "tail"));
  for (const std::string name : {"a.gz", "a.dict.dz", "a.txt"}) {
    const TokenSource source = open_tokens(folder.write(name, members));
    EXPECT_EQ(source.format(), TokenFormat::text) << name;
    EXPECT_EQ(all_tokens(source), encode(text + "tail")) << name;
    EXPECT_EQ(source.resident().count, 100004) << name;
  }
}

TEST(TokenSource, ReadsLlmcFilesOfBothWidths) {
  const Folder folder;
  const std::vector<uint16_t> narrow = {0, 50256, 65535};
  const std::vector<uint32_t> wide = {0, 128255, 70000};
  const TokenSource gpt2 =
      open_tokens(folder.write("a.bin", llmc_header(20240520, 1, 3) + bytes_of(narrow)));
  const TokenSource llama =
      open_tokens(folder.write("b.bin", llmc_header(20240801, 7, 3) + bytes_of(wide)));
  EXPECT_EQ(gpt2.format(), TokenFormat::llmc);
  EXPECT_EQ(gpt2.vocabulary(), 0);
  EXPECT_EQ(all_tokens(gpt2), (std::vector<int32_t>{0, 50256, 65535}));
  EXPECT_EQ(all_tokens(llama), (std::vector<int32_t>{0, 128255, 70000}));
}

TEST(TokenSource, TakesAHeaderlessBinForNanogpt) {
  const Folder folder;
  const std::string bytes = bytes_of(std::vector<uint16_t>{7, 50256, 0});
  for (const auto& path : {folder.write("a.bin", bytes), folder.write_gzip("a.bin.gz", bytes)}) {
    const TokenSource source = open_tokens(path);
    EXPECT_EQ(source.format(), TokenFormat::nanogpt) << path;
    EXPECT_EQ(all_tokens(source), (std::vector<int32_t>{7, 50256, 0})) << path;
  }
}

TEST(TokenSource, NeverDecompressesNanogptTokensThatLookLikeGzip) {
  const Folder folder;
  const std::vector<uint16_t> ids = {0x8b1f, 8, 3};
  const auto path = folder.write("a.bin", bytes_of(ids));
  EXPECT_EQ(all_tokens(open_tokens(path, "nanogpt")), (std::vector<int32_t>{0x8b1f, 8, 3}));
}

TEST(TokenSource, TheNamedFormatOverrulesTheDetectedOne) {
  const Folder folder;
  const auto path = folder.write("a.bin", "abcd");
  EXPECT_EQ(all_tokens(open_tokens(path, "text")), encode("abcd"));
  EXPECT_EQ(open_tokens(path, "nanogpt").size(), 2);
}

RC_GTEST_PROP(TokenSource, ReadsPlimsollFilesOfBothWidths, ()) {
  const Folder folder;
  const int64_t vocabulary = *rc::gen::element<int64_t>(1, 264, 65536, 65537, int64_t{1} << 31);
  const auto largest = static_cast<int32_t>(vocabulary - 1);
  auto ids = *rc::gen::nonEmpty(rc::gen::container<std::vector<int32_t>>(rc::gen::map<uint32_t>(
      [=](uint32_t x) { return static_cast<int32_t>(x % static_cast<uint64_t>(vocabulary)); })));
  ids.push_back(largest);
  const TokenSource source = open_tokens(folder.write("a.tokens", plimsoll_file(ids, vocabulary)));
  RC_ASSERT(source.format() == TokenFormat::plimsoll);
  RC_ASSERT(source.vocabulary() == vocabulary);
  RC_ASSERT(source.bytes_per_token() == (vocabulary <= 65536 ? 2 : 4));
  RC_ASSERT(all_tokens(source) == ids);
  check_vocabulary(source, vocabulary);
}

TEST(TokenSource, ReadsAnyRange) {
  const Folder folder;
  const TokenSource source = open_tokens(folder.write("a.txt", "abcdef"));
  std::vector<int32_t> tokens(3);
  source.read(2, tokens);
  EXPECT_EQ(tokens, encode("cde"));
  EXPECT_THAT(error_of([&] { source.read(4, tokens); }), HasSubstr("70: Internal error"));
  EXPECT_THAT(error_of([&] { source.read(-1, tokens); }), HasSubstr("70: Internal error"));
}

TEST(TokenSource, LivesAsLongAsItsLastCopy) {
  const Folder folder;
  TokenSource copy;
  {
    const TokenSource source = open_tokens(folder.write("a.txt", "abc"));
    copy = source;
  }
  EXPECT_EQ(all_tokens(copy), encode("abc"));
}

TEST(CheckVocabulary, NamesTheFirstIdOutsideItsTokenAndItsByte) {
  const Folder folder;
  // Past one chunk of the scan, with a larger id behind it.
  std::vector<uint16_t> ids(200000, 11);
  ids[150001] = 300;
  ids[190000] = 301;
  const TokenSource nanogpt = open_tokens(folder.write("a.bin", bytes_of(ids)));
  const std::string error = error_of([&] { check_vocabulary(nanogpt, 300); });
  EXPECT_THAT(error, HasSubstr("a.bin: token 150001 (byte 300002) has id 300, outside the "
                               "vocabulary of 300."));
  EXPECT_THAT(error, HasSubstr("The largest id is 301: set model.vocab = 302 or more"));
  EXPECT_EQ(error_of([&] { check_vocabulary(nanogpt, 302); }), "no error");
  EXPECT_EQ(error_of([&] { check_vocabulary(nanogpt, 70000); }), "no error");

  const TokenSource llmc = open_tokens(folder.write(
      "b.bin", llmc_header(20240801, 7, 2) + bytes_of(std::vector<uint32_t>{1, 0x80000000u})));
  EXPECT_THAT(error_of([&] { check_vocabulary(llmc, int64_t{1} << 40); }),
              HasSubstr("token 1 (byte 1028) has id 2147483648"));

  const TokenSource gzip = open_tokens(folder.write_gzip("c.gz", "ab\xff"));
  EXPECT_THAT(error_of([&] { check_vocabulary(gzip, 128); }),
              HasSubstr("token 2 (byte 2 of the decompressed data) has id 255"));
}

}  // namespace
}  // namespace plimsoll::data
