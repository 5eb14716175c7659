#include "plimsoll/step/placement.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace plimsoll::step {

namespace {

constexpr double good_enough = 1.0005;     // of the bound: no other order is tried
constexpr double search_above = 1.01;      // of the bound
constexpr int search_rounds = 2000;        // at most
constexpr int64_t search_work = 40'000;  // buffers placed, which bounds the time

// Occupied addresses: disjoint intervals in ascending order, neighbours merged.
class Occupied {
 public:
  struct Interval {
    int64_t begin, end;
  };

  void clear() { intervals_.clear(); }
  bool empty() const { return intervals_.empty(); }

  void insert(int64_t begin, int64_t end) {
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                                  [](const Interval& i, int64_t at) { return i.end < at; });
    auto last = first;
    while (last != intervals_.end() && last->begin <= end) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
      ++last;
    }
    if (first == last) {
      intervals_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    intervals_.erase(first + 1, last);
  }

  const Interval* begin() const { return intervals_.data(); }
  const Interval* end() const { return intervals_.data() + intervals_.size(); }

 private:
  std::vector<Interval> intervals_;
};

// The addresses taken over time: a segment tree over the moments at which buffers begin. Two
// lifetimes meet exactly where the later one begins, so other moments need not be told apart.
class AddressTree {
 public:
  explicit AddressTree(int moments)
      : leaves_(std::bit_ceil(static_cast<unsigned>(std::max(1, moments)))),
        across_(2 * leaves_),
        within_(2 * leaves_) {}

  void clear() {
    for (Occupied& node : across_) node.clear();
    for (Occupied& node : within_) node.clear();
  }

  // The lowest offset with `size` free bytes over the moments [first, last].
  int64_t lowest_free(int first, int last, int64_t size) {
    cursors_.clear();
    const auto look = [&](const Occupied& node) {
      if (!node.empty()) cursors_.push_back({node.begin(), node.end()});
    };
    visit(first, last, [&](unsigned node) { look(within_[node]); },
          [&](unsigned node) { look(across_[node]); });
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (Cursor& cursor : cursors_) {
        while (cursor.at != cursor.end && cursor.at->end <= offset) ++cursor.at;
        while (cursor.at != cursor.end && cursor.at->begin < offset + size) {
          offset = cursor.at->end;
          ++cursor.at;
          moved = true;
        }
      }
    }
    return offset;
  }

  void take(int first, int last, int64_t begin, int64_t end) {
    visit(
        first, last,
        [&](unsigned node) {
          across_[node].insert(begin, end);
          within_[node].insert(begin, end);
        },
        [&](unsigned node) { within_[node].insert(begin, end); });
  }

 private:
  struct Cursor {
    const Occupied::Interval* at;
    const Occupied::Interval* end;
  };

  // Calls `whole` for the nodes that make up [first, last] and `above` for each node over those.
  template <class Whole, class Above>
  void visit(int first, int last, Whole whole, Above above) {
    const unsigned from = static_cast<unsigned>(first) + leaves_;
    const unsigned to = static_cast<unsigned>(last) + leaves_;
    unsigned low = from, high = to + 1;
    for (; low < high; low >>= 1, high >>= 1) {
      if (low & 1) whole(low++);
      if (high & 1) whole(--high);
    }
    // A node is above the range when it covers part of it and is not itself in the cover: the
    // ancestors of both ends that reach outside.
    for (unsigned a = from >> 1, b = to >> 1, width = 2; a > 0; a >>= 1, b >>= 1, width *= 2) {
      if (!inside(a, width, from, to)) above(a);
      if (b != a && !inside(b, width, from, to)) above(b);
    }
  }
  // Whether all leaves of `node`, at a level where nodes have `width` leaves, are in [from, to].
  static bool inside(unsigned node, unsigned width, unsigned from, unsigned to) {
    return node * width >= from && node * width + width - 1 <= to;
  }

  unsigned leaves_;
  std::vector<Occupied> across_;  // what lives over the whole of a node
  std::vector<Occupied> within_;  // what lives somewhere in a node
  std::vector<Cursor> cursors_;
};

// Places buffers in given orders, over and over.
class Placer {
 public:
  explicit Placer(std::vector<Buffer>& buffers) : buffers_(buffers), tree_(0) {
    std::vector<int> begins;
    begins.reserve(buffers.size());
    for (const Buffer& buffer : buffers) begins.push_back(buffer.lifetime.begin);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    for (const Buffer& buffer : buffers) {
      const auto first = std::lower_bound(begins.begin(), begins.end(), buffer.lifetime.begin);
      const auto past = std::upper_bound(first, begins.end(), buffer.lifetime.end);
      moments_.push_back({static_cast<int>(first - begins.begin()),
                          static_cast<int>(past - begins.begin()) - 1});
    }
    tree_ = AddressTree(static_cast<int>(begins.size()));
  }

  // Returns the height; stops early, with a larger one, when it is over `limit`.
  int64_t place(const std::vector<int>& order, int64_t limit) {
    tree_.clear();
    int64_t height = 0;
    for (const int index : order) {
      Buffer& buffer = buffers_[static_cast<size_t>(index)];
      const auto [first, last] = moments_[static_cast<size_t>(index)];
      ++work_;
      buffer.offset = tree_.lowest_free(first, last, buffer.size);
      height = std::max(height, buffer.end());
      if (height > limit) break;
      tree_.take(first, last, buffer.offset, buffer.end());
    }
    return height;
  }

  int64_t work() const { return work_; }

 private:
  std::vector<Buffer>& buffers_;
  std::vector<std::pair<int, int>> moments_;  // per buffer, first and last
  AddressTree tree_;
  int64_t work_ = 0;
};

// The orders tried, best known first: by size, area, lifetime and start.
template <class Try>
void try_orders(const std::vector<Buffer>& buffers, Try try_order) {
  std::vector<int> identity(buffers.size());
  std::iota(identity.begin(), identity.end(), 0);
  const auto sorted = [&](auto key) {
    std::vector<int> order = identity;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return key(buffers[static_cast<size_t>(a)]) > key(buffers[static_cast<size_t>(b)]);
    });
    return order;
  };
  const auto area = [](const Buffer& b) {
    return static_cast<double>(b.size) * static_cast<double>(b.span());
  };
  if (try_order(sorted([](const Buffer& b) { return std::pair(b.size, b.span()); }))) return;
  if (try_order(sorted([&](const Buffer& b) { return std::pair(area(b), b.size); }))) return;
  if (try_order(sorted([](const Buffer& b) { return std::pair(b.span(), b.size); }))) return;
  try_order(sorted([](const Buffer& b) { return std::pair(int64_t{-b.lifetime.begin}, b.size); }));
}

// A small linear congruential generator: the search must give the same plan every time.
struct Random {
  uint64_t state = 88172645463325252u;
  size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % n);
  }
};

// Moves a buffer that reaches the top of the packing to an earlier place in the order and keeps
// the change when the packing does not grow.
int64_t local_search(Placer& placer, std::vector<Buffer>& buffers, std::vector<int> order,
                     int64_t height, int64_t bound) {
  std::vector<Buffer> best = buffers;
  const int64_t end_of_work = placer.work() + search_work;
  Random random;
  for (int round = 0; round < search_rounds && placer.work() < end_of_work && height > bound;
       ++round) {
    std::vector<int> positions;  // in the order, of the buffers at the top of the best packing
    for (size_t i = 0; i < order.size(); ++i) {
      if (best[static_cast<size_t>(order[i])].end() == height) {
        positions.push_back(static_cast<int>(i));
      }
    }
    const int from = positions[random.below(positions.size())];
    if (from == 0) break;
    const int to = static_cast<int>(random.below(static_cast<size_t>(from)));
    std::vector<int> changed = order;
    std::rotate(changed.begin() + to, changed.begin() + from, changed.begin() + from + 1);
    const int64_t changed_height = placer.place(changed, height);
    if (changed_height <= height) {
      height = changed_height;
      order = std::move(changed);
      best = buffers;
    }
  }
  buffers = std::move(best);
  return height;
}

}  // namespace

Placement place_buffers(std::vector<Buffer>& buffers, int64_t bound) {
  if (buffers.empty()) return {};
  Placer placer(buffers);
  std::vector<Buffer> best;
  std::vector<int> best_order;
  int64_t best_height = INT64_MAX;
  try_orders(buffers, [&](std::vector<int> order) {
    const int64_t height = placer.place(order, best_height - 1);
    if (height < best_height) {
      best_height = height;
      best_order = std::move(order);
      best = buffers;
    }
    return static_cast<double>(best_height) <= good_enough * static_cast<double>(bound);
  });
  buffers = std::move(best);
  if (static_cast<double>(best_height) > search_above * static_cast<double>(bound)) {
    best_height = local_search(placer, buffers, std::move(best_order), best_height, bound);
  }
  return {best_height, placer.work()};
}

}  // namespace plimsoll::step
