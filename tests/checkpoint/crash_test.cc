// Kills and failing disks at every moment of a save.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "plimsoll/checkpoint/writer.h"
#include "tests/checkpoint/fixture.h"

namespace plimsoll::checkpoint {
namespace {

constexpr int cannot_trace = 77;

// Runs `body` in a forked child up to its `count`-th system call and kills it there. Returns
// whether the child was killed; false when it ended before, with `status`.
bool kill_after_system_calls(int count, int& status, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(cannot_trace);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  waitpid(child, &status, 0);
  // Each call stops the child twice, before and after.
  for (int stop = 0; WIFSTOPPED(status) && stop < 2 * count; ++stop) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
  }
  if (!WIFSTOPPED(status)) return false;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return true;
}

// What `body` returns, run in a forked child that may change its limits and mounts.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = fmt::format("raised: {}", error.what());
    }
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, count);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : fmt::format("child ended with status {}", status);
}

// Mounts a tmpfs that only this process sees; false when that is not permitted.
bool mount_private_tmpfs(const std::filesystem::path& path, const char* options) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
}

// Tries to save step 2. Empty when that fails as promised: Exit::data with `reason` and the bytes
// needed, nothing begun left over, step 1 whole. "saved" when it works; else what broke.
std::string failed_save(const std::filesystem::path& root, const std::string& reason,
                        bool may_leave_partial = false) {
  try {
    save_version(root, 2, 2);
    return newest(root) == "step 2, version 2" ? "saved" : "saved, but damaged";
  } catch (const Error& error) {
    const std::string text = error.message();
    if (error.code() != Exit::data) return "wrong exit code: " + text;
    for (const std::string& part : {root.string(), reason, std::string(" needed, "),
                                    std::string("available"), std::string("intact")}) {
      if (text.find(part) == std::string::npos) return fmt::format("no '{}' in: {}", part, text);
    }
  }
  if (!may_leave_partial) {
    for (const std::string& name : names_in(root)) {
      if (name.starts_with(".step-")) return "left over: " + name;
    }
  }
  const std::string found = newest(root);
  return found == "step 1, version 1" ? "" : "step 1 lost: " + found;
}

using CheckpointCrash = ScratchFolder;

TEST_F(CheckpointCrash, KillAtAnySystemCallLeavesANewestWholeCheckpoint) {
  save_version(folder, 1, 1);
  std::map<std::string, int> outcomes;
  int calls = 0;
  for (;; ++calls) {
    int status = 0;
    const bool killed = kill_after_system_calls(calls, status, [&] {
      save_version(folder, 2, 2);
      save_version(folder, 2, 3);  // the same step again: the exchange
      keep_last(folder, 1, 2);
    });
    if (!killed && WIFEXITED(status) && WEXITSTATUS(status) == cannot_trace) {
      GTEST_SKIP() << "tracing a child is not permitted here";
    }
    const std::string found = newest(folder);
    ++outcomes[found];
    EXPECT_TRUE(found == "step 1, version 1" || found == "step 2, version 2" ||
                found == "step 2, version 3")
        << "killed after " << calls << " system calls: " << found;
    if (!killed) break;

    // The next save cleans up after the killed one.
    remove_tree(folder / "step-2");
    save_version(folder, 1, 1);
    EXPECT_EQ(sorted_names_in(folder), std::vector<std::string>{"step-1"}) << calls;
  }
  EXPECT_EQ(outcomes.size(), 3u) << "the kills did not reach every phase";
  EXPECT_GT(calls, 30);
}

TEST_F(CheckpointCrash, FileSizeLimitKeepsTheOlderOneAndSaysWhy) {
  save_version(folder, 1, 1);
  EXPECT_EQ(in_child([&]() -> std::string {
              std::signal(SIGXFSZ, SIG_IGN);
              int failures = 0;
              for (rlim_t limit = 0;; limit += 5000) {
                const rlimit soft{limit, RLIM_INFINITY};
                setrlimit(RLIMIT_FSIZE, &soft);
                const std::string result = failed_save(folder, "File too large");
                if (result == "saved") break;
                if (!result.empty()) return fmt::format("limit {}: {}", limit, result);
                ++failures;
              }
              return failures > 10 ? "" : "the limit was never met";
            }),
            "");
}

TEST_F(CheckpointCrash, FileSizeLimitInTheBackgroundIsAnErrorNotASignal) {
  EXPECT_EQ(
      in_child([&]() -> std::string {
        SmallModel model(2);
        std::vector<std::byte> snapshot(static_cast<size_t>(snapshot_bytes(model.shards()).count));
        CheckpointWriter writer(folder, 0, model.shards(), snapshot);
        const rlimit soft{10000, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &soft);
        writer.start({2, 16, nullptr});
        try {
          writer.finish();
        } catch (const Error& error) {
          return error.code() == Exit::data ? "" : error.message();
        }
        return "no error";
      }),
      "");
  EXPECT_TRUE(names_in(folder).empty());
}

TEST_F(CheckpointCrash, FullDiskKeepsTheOlderOneAndSaysWhy) {
  const std::string result = in_child([&]() -> std::string {
    if (!mount_private_tmpfs(folder, "size=1m")) return "skip";
    save_version(folder, 1, 1);
    {
      std::ofstream filler(folder / "filler", std::ios::binary);
      const std::string page(4096, 'f');
      while (filler << page << std::flush) continue;
    }
    const auto full = std::filesystem::file_size(folder / "filler");
    // Frees a page more each time, so the disk is full at every point of the save.
    int failures = 0;
    for (uintmax_t freed = 0; freed <= full; freed += 4096) {
      std::filesystem::resize_file(folder / "filler", full - freed);
      const std::string saved = failed_save(folder, "No space left on device");
      if (saved == "saved") return failures > 10 ? "" : "the disk was never full";
      if (!saved.empty()) return fmt::format("{} bytes free: {}", freed, saved);
      ++failures;
    }
    return "never saved";
  });
  if (result == "skip") GTEST_SKIP() << "mounting a file system is not permitted here";
  EXPECT_EQ(result, "");
}

TEST_F(CheckpointCrash, ReadOnlyDiskKeepsTheOlderOneAndSaysWhy) {
  const std::string result = in_child([&]() -> std::string {
    if (!mount_private_tmpfs(folder, "size=1m")) return "skip";
    save_version(folder, 1, 1);
    make_directories(folder / ".step-2.partial");
    if (mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return "skip";
    return failed_save(folder, "Read-only file system", true);
  });
  if (result == "skip") GTEST_SKIP() << "mounting a file system is not permitted here";
  EXPECT_EQ(result, "");
}

}  // namespace
}  // namespace plimsoll::checkpoint
