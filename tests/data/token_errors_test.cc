// Every way a token file can be wrong has its message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "plimsoll/data/token_source.h"
#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string open_error(const std::filesystem::path& path, std::string_view format = "auto") {
  return error_of([&] { open_tokens(path, format); });
}

TEST(OpenTokens, NamesAMissingFileAndTheNearest) {
  const Folder folder;
  folder.write("train.bin", "ab");
  EXPECT_THAT(open_error(folder / "trian.bin"),
              AllOf(StartsWith("3: "), HasSubstr("trian.bin: No such file or directory."),
                    HasSubstr("Did you mean " + (folder / "train.bin").string())));
  EXPECT_THAT(open_error(folder / "none/train.bin"), HasSubstr("none cannot be read"));
}

TEST(OpenTokens, RejectsWhatIsNoRegularFile) {
  const Folder folder;
  EXPECT_THAT(open_error(folder / ""), AllOf(StartsWith("3: "), HasSubstr("Is a directory")));
  mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_THAT(open_error(folder / "pipe"),
              AllOf(StartsWith("3: "), HasSubstr("it is a pipe, not a regular file")));
  std::filesystem::create_symlink("/dev/zero", folder / "endless");
  EXPECT_THAT(open_error(folder / "endless"), HasSubstr("it is a device, not a regular file"));
  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_THAT(open_error(folder / "circle"), AllOf(StartsWith("3: "), HasSubstr("circle")));
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

TEST(OpenTokens, RejectsWiderIdsThatLookLikeNanogpts) {
  const Folder folder;
  std::vector<uint32_t> ids(100);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i * 500);
  const std::vector<uint64_t> wider(ids.begin(), ids.end());
  for (const std::string format : {"auto", "nanogpt"}) {
    for (const std::string& bytes : {bytes_of(ids), bytes_of(wider)}) {
      EXPECT_THAT(open_error(folder.write("a.bin", bytes), format),
                  AllOf(StartsWith("3: "), HasSubstr("ids of 4 or 8 bytes"), HasSubstr("20240801")))
          << format;
    }
  }
  // Few ids, or nothing but zeros, can be what they seem.
  EXPECT_EQ(open_error(folder.write("a.bin", bytes_of(std::vector<uint32_t>(20, 7)))), "no error");
  EXPECT_EQ(open_error(folder.write("a.bin", bytes_of(std::vector<uint32_t>(200, 0)))), "no error");
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
  const std::string whole = plimsoll_file({1, 2, 3}, 100);
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

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i * 7919 % 10007) + ' ';
  return text;
}

TEST(OpenTokens, SaysWhereGzipDataIsDamaged) {
  const Folder folder;
  const std::string whole = slurp(folder.write_gzip("whole.gz", numbers(20000)));
  EXPECT_THAT(open_error(folder.write("cut.gz", whole.substr(0, whole.size() / 2))),
              AllOf(StartsWith("3: "), HasSubstr("corrupt gzip data near byte "),
                    HasSubstr("(unexpected end of file)"), HasSubstr("gzip -t")));
  std::string flipped = whole;
  flipped[whole.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(open_error(folder.write("flipped.gz", flipped)), HasSubstr("incorrect data check"));
  EXPECT_THAT(open_error(folder.write("magic.gz", "\x1f\x8b\x08")), HasSubstr("unexpected end"));
  EXPECT_THAT(open_error(folder.write("other.gz", "some text")), HasSubstr("is named as gzip"));
}

TEST(OpenTokens, RejectsEveryTruncationAndEveryDamagedMemberOfGzip) {
  const Folder folder;
  const std::string first = slurp(folder.write_gzip("1.gz", numbers(40)));
  const std::string both = first + slurp(folder.write_gzip("2.gz", numbers(30)));
  for (size_t size = 0; size < both.size(); ++size) {
    const std::string error = open_error(folder.write("a.gz", both.substr(0, size)), "text");
    EXPECT_EQ(error == "no error", size == first.size()) << size << " bytes: " << error;
  }
  // Each byte of the second member: magic, header, data, checksum, length. Flags, time and the
  // system's number at bytes 3 to 9 change no data; a flag may make a header of what follows.
  for (size_t at = first.size(); at < both.size(); ++at) {
    if (at >= first.size() + 3 && at < first.size() + 10) continue;
    std::string damaged = both;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THAT(open_error(folder.write("a.gz", damaged)),
                AllOf(StartsWith("3: "), HasSubstr("corrupt gzip data near byte ")))
        << "byte " << at;
  }
}

TEST(OpenTokens, LetsZerosFollowTheLastMemberAndNothingElse) {
  const Folder folder;
  const std::string member = slurp(folder.write_gzip("1.gz", "some text"));
  const std::string zeros(700, '\0');
  EXPECT_EQ(open_tokens(folder.write("a.gz", member + zeros)).size(), 9);
  const std::string place = fmt::format("near byte {} ", member.size() + 2);
  EXPECT_THAT(open_error(folder.write("a.gz", member + "rest")), HasSubstr(place));
  EXPECT_THAT(open_error(folder.write("a.gz", member + zeros + member)),
              HasSubstr(fmt::format("near byte {} ", member.size() + zeros.size())));
}

TEST(OpenTokens, RefusesTextThatTakesMoreMemoryThanThereIs) {
  const Folder folder;
  const auto path = folder.write_gzip("a.gz", std::string(100000, 'x'));
  EXPECT_EQ(error_of([&] { open_tokens(path, "auto", {100000}); }), "no error");
  EXPECT_THAT(
      error_of([&] { open_tokens(path, "auto", {99999}); }),
      AllOf(StartsWith("4: "), HasSubstr("a.gz"), HasSubstr("97.7 KiB"), HasSubstr("zcat")));
}

TEST(TokenSource, SaysThatItsFileWasShortened) {
  const Folder folder;
  const auto path = folder.write("a.txt", std::string(10000, 'x'));
  const TokenSource source = open_tokens(path);
  std::filesystem::resize_file(path, 5000);
  std::vector<int32_t> tokens(100);
  source.read(4900, tokens);
  EXPECT_THAT(error_of([&] { source.read(4901, tokens); }),
              AllOf(StartsWith("3: "), HasSubstr("a.txt: it ends before byte 5000, but had 10000"),
                    HasSubstr("shortened")));
}

}  // namespace
}  // namespace plimsoll::data
