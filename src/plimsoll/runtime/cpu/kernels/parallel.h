// Loops over OpenMP threads whose results do not depend on how many threads there are.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace plimsoll::cpu {

// body(i) for i in [0, count), in any order, on OpenMP's threads.
template <class Body>
void parallel_for(int64_t count, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1)
  for (int64_t i = 0; i < count; ++i) body(i);
}

// body(begin, end) on one range of [0, count) a thread, cut at multiples of `granule`. Where the
// cuts fall depends on the number of threads, so elements must not influence one another.
template <class Body>
void parallel_ranges(int64_t count, int64_t granule, const Body& body) {
  const int64_t granules = (count + granule - 1) / granule;
#pragma omp parallel if (granules > 1)
  {
    const int64_t threads = omp_get_num_threads();
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = granules * thread / threads * granule;
    const int64_t end = std::min(count, granules * (thread + 1) / threads * granule);
    if (begin < end) body(begin, end);
  }
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
