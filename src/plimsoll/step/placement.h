// Addresses for buffers with known lifetimes: those that live at the same time never overlap.
//
// Dynamic storage allocation, NP-hard in general. Every buffer takes the lowest offset where it
// meets nothing placed before it; of several orders (largest first, largest area, longest, as a
// stack) the best is kept, then a bounded local search while the result is over 1.01 x the bound.
// Free offsets are found through a tree over time, so an order of n buffers takes about n log n.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::step {

// Lifetime of a tensor as op indices, both included; begin > end when no op uses it.
struct Lifetime {
  int begin = 0;
  int end = -1;
  bool empty() const { return begin > end; }
  bool overlaps(const Lifetime& other) const { return begin <= other.end && other.begin <= end; }
};

struct Buffer {
  Lifetime lifetime;  // not empty
  int64_t size = 0;
  int64_t offset = 0;  // set by place_buffers
  int64_t end() const { return offset + size; }
  int64_t span() const { return lifetime.end - lifetime.begin + 1; }
};

// What a placement took: the height of the packing, and the buffers placed over all that was tried
// (the unit in which callers bound their work).
struct Placement {
  int64_t height = 0;
  int64_t work = 0;
};

// Sets the offsets. `bound`: the largest sum of sizes that live at once; no packing is lower.
// Deterministic.
Placement place_buffers(std::vector<Buffer>& buffers, int64_t bound);

}  // namespace plimsoll::step
