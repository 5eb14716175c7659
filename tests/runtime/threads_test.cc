// Parallel regions run every piece once, whatever the number of pieces, threads and cores.
#include "plimsoll/runtime/cpu/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "plimsoll/runtime/cpu/kernels/parallel.h"

namespace plimsoll::cpu {
namespace {

// How often each piece ran.
std::vector<int> runs_of(int pieces) {
  std::vector<std::atomic<int>> runs(static_cast<size_t>(pieces));
  run_pieces(pieces, [&](int piece) { ++runs[static_cast<size_t>(piece)]; });
  return {runs.begin(), runs.end()};
}

TEST(ParallelRegions, RunEveryPieceOnce) {
  for (int round = 0; round < 300; ++round) {
    const int pieces = round % 9;
    EXPECT_EQ(runs_of(pieces), std::vector<int>(static_cast<size_t>(pieces), 1)) << round;
  }
  EXPECT_EQ(runs_of(70000), std::vector<int>(70000, 1));
}

TEST(ParallelRegions, ShowTheirResultsToWhoeverStartedThem) {
  std::vector<int> values(5);  // not atomic
  for (int round = 1; round < 500; ++round) {
    run_pieces(5, [&](int piece) { values[static_cast<size_t>(piece)] += piece; });
    for (int piece = 0; piece < 5; ++piece) {
      ASSERT_EQ(values[static_cast<size_t>(piece)], round * piece);
    }
  }
}

TEST(ParallelRegions, RunInsideOfOthers) {
  std::atomic<int> count = 0;
  run_pieces(3, [&](int) { run_pieces(4, [&](int) { ++count; }); });
  EXPECT_EQ(count, 12);
}

TEST(ParallelRegions, MayBeStartedByAnyThread) {
  std::atomic<int> count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) run_pieces(4, [&](int) { ++count; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 3 * 50 * 4);
}

TEST(ParallelRegions, WorkInAForkedChild) {
  EXPECT_EQ(runs_of(3), (std::vector{1, 1, 1}));
  const pid_t child = fork();
  if (child == 0) _exit(runs_of(3) == std::vector{1, 1, 1} ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ParallelRanges, CoverEveryElementOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const int64_t count : {0, 1, 7, 64, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallel_ranges(count, 16, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % 16, 0);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
    }
  }
  set_thread_count(1);
}

}  // namespace
}  // namespace plimsoll::cpu
