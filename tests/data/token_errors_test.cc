// Every way a token file can be wrong has its message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "plimsoll/data/token_source.h"
#include "plimsoll/data/token_writer.h"
#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string open_error(const std::filesystem::path& path, std::string_view format = "auto") {
  return error_of([&] { open_tokens(path, format); });
}

std::string plimsoll_bytes(const Folder& folder, const std::vector<int32_t>& ids) {
  TokenWriter writer(folder / "whole.tokens", 100);
  writer.append(ids);
  writer.finish();
  return slurp(folder / "whole.tokens");
}

TEST(OpenTokens, NamesAMissingFileAndTheNearest) {
  const Folder folder;
  folder.write("train.bin", "ab");
  EXPECT_THAT(open_error(folder / "trian.bin"),
              AllOf(StartsWith("3: "), HasSubstr("trian.bin: no such file."),
                    HasSubstr("Did you mean " + (folder / "train.bin").string())));
  EXPECT_THAT(open_error(folder / "none/train.bin"), HasSubstr("none cannot be read"));
}

TEST(OpenTokens, RejectsDirectoriesAndPipes) {
  const Folder folder;
  EXPECT_THAT(open_error(folder / ""), AllOf(StartsWith("3: "), HasSubstr("is a directory")));
  mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_THAT(open_error(folder / "pipe"), AllOf(StartsWith("3: "), HasSubstr("not a regular")));
}

TEST(OpenTokens, RejectsFilesWithoutTokens) {
  const Folder folder;
  EXPECT_THAT(open_error(folder.write("a.txt", "")),
              AllOf(StartsWith("3: "), HasSubstr("is empty")));
  EXPECT_THAT(open_error(folder.write_gzip("a.gz", "")), HasSubstr("no data once decompressed"));
  EXPECT_THAT(open_error(folder.write("a.bin", llmc_header(20240520, 1, 0))),
              HasSubstr("holds no tokens"));
}

TEST(OpenTokens, RejectsBinaryDataAsText) {
  const Folder folder;
  const auto path = folder.write("a.parquet", std::string("PAR1\0\0", 6));
  EXPECT_THAT(open_error(path), AllOf(StartsWith("3: "), HasSubstr("byte 4 is NUL"),
                                      HasSubstr("data.format = \"nanogpt\"")));
  EXPECT_EQ(open_error(path, "text"), "no error");
}

TEST(OpenTokens, NamesAnUnknownFormatAndTheNearest) {
  const Folder folder;
  const std::string error = open_error(folder.write("a.txt", "a"), "nanogtp");
  EXPECT_EQ(error,
            "2: data.format = \"nanogtp\" is not a format of token files.\n"
            "  Did you mean \"nanogpt\"? Known: auto, text, llmc, nanogpt, plimsoll.");
}

TEST(OpenTokens, RejectsAnOddNanogptSize) {
  const Folder folder;
  EXPECT_THAT(open_error(folder.write("a.bin", "abc")),
              AllOf(StartsWith("3: "), HasSubstr("3 bytes are an odd size")));
}

TEST(OpenTokens, RejectsDamagedLlmcHeaders) {
  const Folder folder;
  const std::string ids = bytes_of(std::vector<uint16_t>{1, 2, 3});
  const auto error = [&](const std::string& bytes) {
    return open_error(folder.write("a.bin", bytes));
  };
  EXPECT_THAT(error(llmc_header(20240520, 1, 3).substr(0, 500)),
              AllOf(StartsWith("3: "), HasSubstr("the llmc header is cut off: 500 bytes of 1024")));
  EXPECT_THAT(error(llmc_header(20240520, 2, 3) + ids),
              HasSubstr("llmc token file of version 2; this program reads version 1"));
  EXPECT_THAT(error(llmc_header(20240520, 1, 4) + ids),
              HasSubstr("says 4 tokens of 2 bytes, but 6 bytes (3 tokens) follow it"));
  EXPECT_THAT(error(llmc_header(20240520, 1, 3) + ids + "x"),
              HasSubstr("says 3 tokens of 2 bytes, but 7 bytes (3 tokens and 1 bytes) follow it"));
  EXPECT_THAT(open_error(folder.write("b.bin", ids), "llmc"),
              HasSubstr("begins with 131073, not with the magic 20240520 or 20240801"));
}

TEST(OpenTokens, RejectsDamagedPlimsollHeaders) {
  const Folder folder;
  const std::string whole = plimsoll_bytes(folder, {1, 2, 3});
  const auto error_with = [&](size_t offset, char value) {
    std::string bytes = whole;
    bytes[offset] = value;
    return open_error(folder.write("a.tokens", bytes), "plimsoll");
  };
  EXPECT_THAT(error_with(0, 'Q'), HasSubstr("not a plimsoll token file"));
  EXPECT_THAT(error_with(8, 9), HasSubstr("version 9; this program reads version 1"));
  EXPECT_THAT(error_with(12, 8), HasSubstr("8 bits a token"));
  EXPECT_THAT(error_with(16, 2), HasSubstr("says 2 tokens of 2 bytes, but 6 bytes (3 tokens)"));
  // A count whose bytes would overflow 64 bits.
  EXPECT_THAT(error_with(23, '\x80'), HasSubstr("says 9223372036854775811 tokens"));
  EXPECT_THAT(error_with(31, '\x7f'), HasSubstr("more than 2^31"));
  EXPECT_THAT(open_error(folder.write("b.tokens", whole.substr(0, 20))),
              HasSubstr("the plimsoll header is cut off: 20 bytes of 32"));
  EXPECT_THAT(open_error(folder.write("b.tokens", whole.substr(0, 36))),
              HasSubstr("says 3 tokens of 2 bytes, but 4 bytes (2 tokens) follow it"));
}

TEST(OpenTokens, SaysWhereGzipDataIsDamaged) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + ' ';
  const std::string whole = slurp(folder.write_gzip("whole.gz", text));
  EXPECT_THAT(open_error(folder.write("cut.gz", whole.substr(0, whole.size() / 2))),
              AllOf(StartsWith("3: "), HasSubstr("corrupt gzip data near byte "),
                    HasSubstr("(unexpected end of file)"), HasSubstr("gzip -t")));
  std::string flipped = whole;
  flipped[whole.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(open_error(folder.write("flipped.gz", flipped)), HasSubstr("incorrect data check"));
  EXPECT_THAT(open_error(folder.write("magic.gz", "\x1f\x8b\x08")), HasSubstr("unexpected end"));
}

}  // namespace
}  // namespace plimsoll::data
