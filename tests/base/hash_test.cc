#include "plimsoll/base/hash.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "plimsoll/base/files.h"

namespace plimsoll {
namespace {

// The examples of FIPS 180-4 (NIST, "SHA256.pdf" of the example values) and the empty message.
TEST(Sha256, MatchesThePublishedExamples) {
  EXPECT_EQ(sha256_hex(std::string_view()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string_view("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      sha256_hex(std::string_view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

RC_GTEST_PROP(Sha256, DoesNotDependOnHowTheBytesArePieced, (const std::string& text)) {
  Sha256 hash;
  for (std::string_view rest = text; !rest.empty();) {
    const auto count = *rc::gen::inRange<size_t>(1, rest.size() + 1);
    hash.update(rest.substr(0, count));
    rest.remove_prefix(count);
  }
  RC_ASSERT(hash.hex() == sha256_hex(std::string_view(text)));
}

TEST(Sha256, HashOfAFileIsThatOfItsBytes) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / fmt::format("hash_test_{}", getpid());
  const std::string text(200001, 'p');
  write_file_atomically(path, text);
  const FileHash hash = hash_file(path);
  EXPECT_EQ(hash.bytes.count, 200001);
  EXPECT_EQ(hash.sha256, sha256_hex(text));
  remove_tree(path);
}

}  // namespace
}  // namespace plimsoll
