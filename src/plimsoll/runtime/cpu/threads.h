// The threads of the CPU's kernels. One pool a process, started by the first parallel region and
// asleep between steps.
//
// A thread that waits spins for some 50 us, as long as a step's next region is likely to come, and
// then sleeps: spinning on would take the core from whoever the step waits for. A region is cut in
// pieces that are numbered; whoever is awake takes the next one, so that a region never waits for a
// thread that has not begun.
#pragma once

#include <cstdint>
#include <type_traits>

namespace plimsoll::cpu {

// How many threads the kernels use that are not told; at first one. A setting of the process.
void set_thread_count(int threads);
int thread_count();

namespace detail {
using Piece = void (*)(const void* body, int piece);
void run_pieces(int pieces, Piece piece, const void* body);
}  // namespace detail

// body(piece) for each piece in [0, pieces), on at most so many threads, in any order; returns when
// all are done. Inside of another region the pieces run one after another. The body does not throw.
template <class Body>
void run_pieces(int pieces, const Body& body) {
  detail::run_pieces(
      pieces, [](const void* b, int piece) { (*static_cast<const Body*>(b))(piece); }, &body);
}

// Starts the threads of the pool, `count` in all or one a core with 0, before a run takes the
// memory that their stacks need. Raises Exit::does_not_fit when the system gives fewer (`ulimit
// -u`, `ulimit -v`).
void start_threads(int count);

}  // namespace plimsoll::cpu
