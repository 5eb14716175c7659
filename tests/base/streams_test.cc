#include "plimsoll/base/streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "plimsoll/base/files.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder = fs::path(testing::TempDir()) / fmt::format("streams_{}_{}", test->name(), getpid());
    fs::create_directories(folder);
    mkfifo((folder / "pipe").c_str(), 0600);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string error_of(const fs::path& path, milliseconds patience = std::chrono::seconds(10)) {
    try {
      read_input(path, {1 << 20}, patience);
    } catch (const FileError& error) {
      EXPECT_EQ(error.code(), Exit::data);
      EXPECT_FALSE(error.advice().empty());
      return error.what();
    }
    return "";
  }

  fs::path folder;
};

TEST_F(Streams, ReadsFilesAndPipesToTheirEnd) {
  const std::string text(300000, 'x');  // more than a pipe holds
  write_file_atomically(folder / "file", text);
  EXPECT_EQ(read_input(folder / "file", {1 << 20}), text);
  // A writer that opens late, and one that comes in two pieces.
  std::thread writer([&] {
    const FileDescriptor end(::open((folder / "pipe").c_str(), O_WRONLY | O_CLOEXEC));
    write_all(end, std::as_bytes(std::span(text).first(10)), folder / "pipe");
    std::this_thread::yield();
    write_all(end, std::as_bytes(std::span(text).subspan(10)), folder / "pipe");
  });
  EXPECT_EQ(read_input(folder / "pipe", {1 << 20}), text);
  writer.join();
}

TEST_F(Streams, ReadsTheEndOfAPipeThatTheShellHasOpened) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(read_input(fmt::format("/dev/fd/{}", ends[0]), {100}), "text");
  ::close(ends[0]);
}

TEST_F(Streams, NeverReadsForEver) {
  EXPECT_EQ(error_of(folder / "pipe", milliseconds(50)),
            fmt::format("Cannot read {}: nothing came through it for 0.05 s.",
                        (folder / "pipe").string()));
  EXPECT_EQ(error_of("/dev/zero"), "Cannot read /dev/zero: it holds more than 1.0 MiB.");
  EXPECT_EQ(error_of(folder), fmt::format("Cannot read {}: Is a directory.", folder.string()));
  EXPECT_NE(error_of(folder / "none"), "");
}

TEST_F(Streams, WritesFilesWholeAndEverythingElseAsItIs) {
  write_output(folder / "file", "text");
  EXPECT_EQ(read_file(folder / "file"), "text");
  fs::create_symlink("file", folder / "link");
  write_output(folder / "link", "other");
  EXPECT_EQ(read_file(folder / "file"), "other");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));

  const FileDescriptor reader(::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_output(folder / "pipe", "through");
  char got[8] = {};
  EXPECT_EQ(::read(reader.get(), got, sizeof(got)), 7);
  EXPECT_EQ(std::string(got), "through");
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));

  EXPECT_THROW(write_output(folder, "text"), FileError);
  EXPECT_THROW(write_output("/dev/full", "text"), FileError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Streams, AddsToAnOpenFileThatIsNamedByItsDescriptor) {
  const FileDescriptor file(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  write_all(file, std::as_bytes(std::span(std::string_view("before "))), folder / "out");
  write_output(fmt::format("/dev/fd/{}", file.get()), "after");
  EXPECT_EQ(read_file(folder / "out"), "before after");
}

}  // namespace
}  // namespace plimsoll
