// Where every tensor of a program lives in one arena, decided before anything is allocated.
//
// Persistent tensors lie first, one after another, in the order of their roles. Behind them every
// other tensor has its bytes from the first op that writes it to the last op that may run beside
// one that uses it (streams.h; with one stream, the last op that uses it); tensors whose lifetimes
// do not meet share addresses (placement.h, docs/memory.md).
#pragma once

#include <array>
#include <vector>

#include "plimsoll/step/placement.h"
#include "plimsoll/step/program.h"

namespace plimsoll::step {

struct MemoryPlan {
  int64_t alignment = 256;
  std::vector<Bytes> offsets;       // per tensor, from the start of the arena
  std::vector<Bytes> sizes;         // per tensor, rounded up to the alignment; 0 when never used
  std::vector<Lifetime> lifetimes;  // per tensor; persistent ones span the whole program
  Bytes persistent;                 // bytes of the persistent tensors, at the start of the arena
  Bytes arena;                      // bytes to allocate: persistent + packed rest
  Bytes lower_bound;                // persistent + largest sum of live bytes: no plan needs less
  int peak_op = 0;                  // the op at which the most bytes are live
  std::array<Bytes, role_count> at_peak;  // live bytes of each role at peak_op

  double packing() const {  // arena / lower_bound, at least 1
    return static_cast<double>(arena.count) / static_cast<double>(lower_bound.count);
  }
};

MemoryPlan plan_memory(const Program&, int64_t alignment = 256);

// Live bytes (persistent included) at every op: the memory timeline of the step.
std::vector<Bytes> live_bytes(const Program&, const MemoryPlan&);

// A pair of tensors that are live at once and share an address, if there is one: the oracle of the
// tests, O(n log n).
struct Overlap {
  TensorId first = -1;
  TensorId second = -1;
  bool found() const { return first >= 0; }
};
Overlap find_overlap(const Program&, const MemoryPlan&);

}  // namespace plimsoll::step
