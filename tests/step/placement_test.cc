#include "plimsoll/step/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace plimsoll::step {
namespace {

std::vector<Buffer> random_buffers(int count, int ops) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int begin = *rc::gen::inRange(0, ops);
    const int span = *rc::gen::element(1, 2, 5, ops);
    buffers.push_back({.lifetime = {begin, std::min(ops - 1, begin + span - 1)},
                       .size = 256 * *rc::gen::inRange<int64_t>(0, 40)});
  }
  return buffers;
}

int64_t bound_of(const std::vector<Buffer>& buffers, int ops) {
  int64_t most = 0;
  for (int op = 0; op < ops; ++op) {
    int64_t live = 0;
    for (const Buffer& b : buffers) {
      if (b.lifetime.overlaps({op, op})) live += b.size;
    }
    most = std::max(most, live);
  }
  return most;
}

// The plain form of one order: look at every buffer placed before.
int64_t height_by_size(std::vector<Buffer> buffers) {
  std::stable_sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) {
    return std::pair(a.size, a.span()) > std::pair(b.size, b.span());
  });
  int64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    Buffer& buffer = buffers[i];
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t j = 0; j < i; ++j) {
        const Buffer& other = buffers[j];
        if (other.lifetime.overlaps(buffer.lifetime) && other.offset < buffer.end() &&
            buffer.offset < other.end()) {
          buffer.offset = other.end();
          moved = true;
        }
      }
    }
    height = std::max(height, buffer.end());
  }
  return height;
}

RC_GTEST_PROP(Placement, NeverOverlapsAndIsNoWorseThanThePlainForm, ()) {
  const int ops = *rc::gen::inRange(1, 40);
  std::vector<Buffer> buffers = random_buffers(*rc::gen::inRange(1, 60), ops);
  const int64_t plain = height_by_size(buffers), bound = bound_of(buffers, ops);
  const int64_t height = place_buffers(buffers, bound).height;
  int64_t top = 0;
  for (size_t a = 0; a < buffers.size(); ++a) {
    top = std::max(top, buffers[a].end());
    for (size_t b = 0; b < a; ++b) {
      if (!buffers[a].lifetime.overlaps(buffers[b].lifetime)) continue;
      RC_ASSERT(buffers[a].end() <= buffers[b].offset || buffers[b].end() <= buffers[a].offset);
    }
  }
  RC_ASSERT(height == top);
  RC_ASSERT(height >= bound);
  RC_ASSERT(height <= plain);
}

TEST(Placement, BoundsItsWork) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 5000; ++i) {  // pairs that pack badly, so that the search goes on
    buffers.push_back({.lifetime = {i, i + 1 + i * 7919 % 50}, .size = 256 * (1 + i * 104729 % 97)});
  }
  const Placement placement = place_buffers(buffers, 1);
  EXPECT_LE(placement.work, 4 * 5000 + 150'000);
}

}  // namespace
}  // namespace plimsoll::step
