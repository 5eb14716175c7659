#include "plimsoll/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder = fs::path(testing::TempDir()) / fmt::format("files_test_{}_{}", test->name(), getpid());
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path folder;
};

TEST_F(Files, AtomicWriteReplacesTheWholeFileAndLeavesNothingElse) {
  const fs::path path = folder / "plan.json";
  write_file_atomically(path, std::string_view("the first, longer text"));
  write_file_atomically(path, std::string_view("second"));
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"plan.json"});
}

TEST_F(Files, AtomicFileWithoutCommitLeavesTheOldOne) {
  const fs::path path = folder / "plan.json";
  write_file_atomically(path, std::string_view("old"));
  {
    AtomicFile file(path);
    file.write("half of the ne");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"plan.json"});
}

TEST_F(Files, AtomicWriteIgnoresTheTemporariesOfAKilledWriter) {
  const fs::path path = folder / "plan.json";
  std::string abandoned;
  {
    AtomicFile file(path);
    abandoned = names_in(folder).front();
  }
  EXPECT_TRUE(is_abandoned_temporary(abandoned)) << abandoned;
  write_file_atomically(folder / abandoned, std::string_view("left by a kill"));
  write_file_atomically(path, std::string_view("new"));
  EXPECT_EQ(read_file(path), "new");
}

TEST_F(Files, AtomicWriteOverAFileSizeLimitKeepsTheOldFileAndSaysWhy) {
  const fs::path path = folder / "plan.json";
  write_file_atomically(path, std::string_view("old"));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(path, std::string(5000, 'x'));
      _exit(1);
    } catch (const FileError& error) {
      _exit(error.error_number() == EFBIG && error.code() == Exit::data ? 0 : 2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"plan.json"});
}

TEST_F(Files, AtomicWriteErrorNamesTheFileAskedForAndTheReason) {
  const fs::path path = folder / "missing" / "plan.json";
  try {
    write_file_atomically(path, std::string_view("text"));
    FAIL() << "no error";
  } catch (const FileError& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
    EXPECT_STREQ(error.what(),
                 fmt::format("Cannot write {}: No such file or directory.", path.string()).c_str());
    EXPECT_FALSE(error.advice().empty());
  }
}

TEST_F(Files, ReadersSeeTheSameBytesAtEverySize) {
  for (const size_t size : {0u, 1u, 65535u, 65536u, 65537u, 200000u}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 % 251);
    write_file_atomically(folder / "data", text);
    EXPECT_TRUE(read_file(folder / "data") == text) << size << " bytes";

    std::string piece(size / 2, '?');
    InputFile(folder / "data")
        .read(static_cast<int64_t>(size - piece.size()), std::as_writable_bytes(std::span(piece)));
    EXPECT_TRUE(text.ends_with(piece)) << size;

    const MappedFile mapped(folder / "data");
    EXPECT_TRUE(std::ranges::equal(mapped.bytes(), std::as_bytes(std::span(text)))) << size;

    size_t largest = 0;
    const Bytes total = read_in_chunks(folder / "data", [&](std::span<const std::byte> chunk) {
      largest = std::max(largest, chunk.size());
    });
    EXPECT_EQ(total.count, static_cast<int64_t>(size));
    EXPECT_LE(largest, 65536u);
  }
}

// What `action` raises: errno and sentence; "" when nothing.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), Exit::data);
    EXPECT_FALSE(error.advice().empty()) << error.what();
    return fmt::format("{}: {}", error.error_number(), error.what());
  }
  return "";
}

TEST_F(Files, OnlyRegularFilesAreReadAndNothingElseIsWaitedFor) {
  mkfifo((folder / "pipe").c_str(), 0600);
  fs::create_symlink("pipe", folder / "link");
  fs::create_symlink("/dev/zero", folder / "endless");
  fs::create_symlink("circle", folder / "circle");
  const std::map<std::string, std::string> reasons = {
      {"none", "2: Cannot read PATH: No such file or directory."},
      {"", "21: Cannot read PATH: Is a directory."},
      {"pipe", "0: Cannot read PATH: it is a pipe, not a regular file."},
      {"link", "0: Cannot read PATH: it is a pipe, not a regular file."},
      {"endless", "0: Cannot read PATH: it is a device, not a regular file."},
      {"circle", "40: Cannot read PATH: Too many levels of symbolic links."}};
  for (const auto& [name, reason] : reasons) {
    const fs::path path = folder / name;
    std::string expected = reason;
    expected.replace(expected.find("PATH"), 4, path.string());
    EXPECT_EQ(error_of([&] { read_file(path); }), expected);
    EXPECT_EQ(error_of([&] { MappedFile mapped(path); }), expected);
    EXPECT_EQ(error_of([&] { InputFile file(path); }), expected);
    EXPECT_EQ(error_of([&] { read_in_chunks(path, [](auto) {}); }), expected);
  }
  EXPECT_EQ(error_of([&] { open_file(folder / "pipe", O_WRONLY | O_APPEND); }),
            fmt::format("0: Cannot write {}: it is a pipe, not a regular file.",
                        (folder / "pipe").string()));
}

TEST_F(Files, NamesTheNearestFileWhenOneIsMissing) {
  write_file_atomically(folder / "train.txt", std::string_view("x"));
  try {
    read_file(folder / "trian.txt");
    FAIL() << "no error";
  } catch (const FileError& error) {
    EXPECT_EQ(error.advice(), fmt::format("Did you mean {}?", (folder / "train.txt").string()));
  }
}

TEST_F(Files, SaysWhenNoMoreFilesMayBeOpened) {
  write_file_atomically(folder / "a", std::string_view("x"));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string advice;
  try {
    InputFile file(folder / "a");
  } catch (const FileError& error) {
    advice = error.advice();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(advice.find("ulimit -n"), std::string::npos) << advice;
}

TEST_F(Files, AtomicWriteFollowsLinksAndNeverReplacesWhatIsNoFile) {
  fs::create_directories(folder / "there");
  fs::create_symlink("there/real", folder / "link");  // to a file that is still to be made
  fs::create_symlink("link", folder / "chain");
  for (const std::string text : {"first", "second"}) {
    write_file_atomically(folder / "chain", text);
    EXPECT_EQ(read_file(folder / "there" / "real"), text);
    EXPECT_TRUE(fs::is_symlink(folder / "chain") && fs::is_symlink(folder / "link"));
  }
  mkfifo((folder / "pipe").c_str(), 0600);
  fs::create_symlink("pipe", folder / "to_pipe");
  for (const std::string name : {"pipe", "to_pipe"}) {
    EXPECT_EQ(error_of([&] { write_file_atomically(folder / name, std::string_view("x")); }),
              fmt::format("0: Cannot write {}: it is a pipe, not a regular file.",
                          (folder / name).string()));
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST_F(Files, MovedMappingStaysReadable) {
  write_file_atomically(folder / "a", std::string_view("aaa"));
  write_file_atomically(folder / "b", std::string_view("bb"));
  MappedFile first(folder / "a");
  MappedFile second(folder / "b");
  second = std::move(first);
  EXPECT_EQ(second.bytes().size(), 3u);
  const MappedFile third(std::move(second));
  EXPECT_EQ(static_cast<char>(third.bytes()[2]), 'a');
}

TEST_F(Files, MakesAndRemovesFolders) {
  make_directories(folder / "a" / "b" / "c");
  make_directories(folder / "a" / "b" / "c");
  EXPECT_TRUE(fs::is_directory(folder / "a" / "b" / "c"));
  write_file_atomically(folder / "a" / "b" / "file", std::string_view("x"));
  EXPECT_THROW(make_directories(folder / "a" / "b" / "file"), FileError);
  remove_tree(folder / "a");
  remove_tree(folder / "a");
  EXPECT_TRUE(names_in(folder).empty());
  EXPECT_TRUE(names_in(folder / "a").empty());
}

TEST_F(Files, FoldersThatCannotAllBeMadeLeaveNone) {
  fs::path deep = folder / "a";
  for (int i = 0; i < 3000; ++i) deep /= "n";
  EXPECT_THROW(make_directories(deep), FileError);
  EXPECT_THROW(make_directories(folder / "b" / "c" / std::string(300, 'x') / "d"), FileError);
  EXPECT_TRUE(names_in(folder).empty());
}

TEST_F(Files, TellsTheSpaceOfADiskForAPathThatDoesNotExistYet) {
  EXPECT_EQ(available_on_disk(folder / "not" / "yet") > Bytes{0},
            available_on_disk(folder) > Bytes{0});
}

TEST_F(Files, LockIsExclusiveUntilItsOwnerGoes) {
  const fs::path path = folder / ".lock";
  {
    const std::optional<FileLock> owner = FileLock::try_acquire(path);
    ASSERT_TRUE(owner);
    EXPECT_FALSE(FileLock::try_acquire(path));
  }
  EXPECT_TRUE(FileLock::try_acquire(path));
}

TEST_F(Files, LockEndsWithAKilledProcess) {
  const fs::path path = folder / ".lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::optional<FileLock> lock = FileLock::try_acquire(path);
    const char held = lock ? 1 : 0;
    if (write(ready[1], &held, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char held = 0;
  ASSERT_EQ(read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 1);
  EXPECT_FALSE(FileLock::try_acquire(path));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(FileLock::try_acquire(path));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace plimsoll
