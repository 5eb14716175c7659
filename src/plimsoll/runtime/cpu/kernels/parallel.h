// Loops over threads whose results do not depend on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "plimsoll/runtime/cpu/threads.h"

namespace plimsoll::cpu {

// body(task, thread) for each task in [0, tasks), begun in that order; `thread` in [0, threads) is
// whose scratch the task may use.
template <class Body>
void parallel_tasks(int64_t tasks, int threads, const Body& body) {
  std::atomic<int64_t> next = 0;
  run_pieces(static_cast<int>(std::min<int64_t>(tasks, threads)), [&](int thread) {
    for (int64_t task = next++; task < tasks; task = next++) body(task, thread);
  });
}

// body(begin, end) on ranges that make up [0, count), cut at multiples of `granule`. Where the cuts
// fall depends on the number of threads, so elements must not influence one another. Several ranges
// a thread: one that is held up by other processes then leaves them to the others.
template <class Body>
void parallel_ranges(int64_t count, int64_t granule, const Body& body) {
  const int64_t granules = (count + granule - 1) / granule;
  const int threads = thread_count();
  const int64_t ranges = threads == 1 ? 1 : std::min<int64_t>(granules, 4 * int64_t{threads});
  parallel_tasks(ranges, threads, [&](int64_t range, int) {
    const int64_t begin = granules * range / ranges * granule;
    const int64_t end = std::min(count, granules * (range + 1) / ranges * granule);
    if (begin < end) body(begin, end);
  });
}

// body(i) for i in [0, count), in any order.
template <class Body>
void parallel_for(int64_t count, const Body& body) {
  parallel_ranges(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// Blocks of rows whose sums are made apart and then added in order. They depend on the number of
// rows only: at least 8 rows each, so that small problems stay in one piece, and at most 64 blocks,
// so that their sums stay small beside what is summed.
class RowBlocks {
 public:
  explicit RowBlocks(int64_t rows)
      : rows_(rows), rows_per_block_(std::max<int64_t>(8, (rows + 63) / 64)) {}
  int64_t count() const { return (rows_ + rows_per_block_ - 1) / rows_per_block_; }
  int64_t begin(int64_t block) const { return block * rows_per_block_; }
  int64_t end(int64_t block) const { return std::min(rows_, (block + 1) * rows_per_block_); }

 private:
  int64_t rows_;
  int64_t rows_per_block_;
};

}  // namespace plimsoll::cpu
