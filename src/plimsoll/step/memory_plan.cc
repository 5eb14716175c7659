#include "plimsoll/step/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>

#include "plimsoll/step/streams.h"

namespace plimsoll::step {

namespace {

constexpr double search_above = 1.01;         // of the lower bound
constexpr int search_rounds = 2000;           // at most
constexpr int64_t search_work = 200'000'000;  // comparisons, which bound the time on large programs

struct Buffer {
  TensorId id = -1;
  Lifetime lifetime;
  int64_t size = 0;
  int64_t offset = 0;
  int64_t end() const { return offset + size; }
  int64_t span() const { return lifetime.end - lifetime.begin + 1; }
};

std::vector<Lifetime> lifetimes_of(const Program& program) {
  std::vector<Lifetime> lifetimes(program.tensors.size(), {0, -1});
  const StreamOrder order(program);
  const auto touch = [&](TensorId id, int op) {
    Lifetime& lifetime = lifetimes[static_cast<size_t>(id)];
    if (lifetime.empty()) lifetime.begin = op;
    lifetime.end = std::max(lifetime.end, order.last_beside(op));
  };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    for (const Operand& operand : op.inputs) touch(operand.tensor, static_cast<int>(i));
    for (const Operand& operand : op.outputs) touch(operand.tensor, static_cast<int>(i));
    if (op.workspace >= 0) touch(op.workspace, static_cast<int>(i));
  }
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (program.tensors[i].persistent) {
      lifetimes[i] = {0, std::max(0, static_cast<int>(program.ops.size()) - 1)};
    }
  }
  return lifetimes;
}

// Places the buffers in the given order, each at the lowest offset where it meets no buffer placed
// before it that lives at the same time. Returns the height of the packing.
int64_t place(std::vector<Buffer>& buffers, const std::vector<int>& order,
              std::vector<const Buffer*>& placed) {
  placed.clear();  // sorted by offset
  int64_t height = 0;
  for (const int index : order) {
    Buffer& buffer = buffers[static_cast<size_t>(index)];
    int64_t offset = 0;
    for (const Buffer* other : placed) {
      if (other->offset >= offset + buffer.size) break;
      if (other->lifetime.overlaps(buffer.lifetime)) offset = std::max(offset, other->end());
    }
    buffer.offset = offset;
    height = std::max(height, buffer.end());
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), &buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    placed.insert(position, &buffer);
  }
  return height;
}

// The orders tried, best known first: by size, area, lifetime and start.
std::vector<std::vector<int>> candidate_orders(const std::vector<Buffer>& buffers) {
  std::vector<int> identity(buffers.size());
  std::iota(identity.begin(), identity.end(), 0);
  const auto sorted = [&](auto key) {
    std::vector<int> order = identity;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return key(buffers[static_cast<size_t>(a)]) > key(buffers[static_cast<size_t>(b)]);
    });
    return order;
  };
  return {sorted([](const Buffer& b) { return std::pair(b.size, b.span()); }),
          sorted([](const Buffer& b) { return std::pair(b.size * b.span(), b.size); }),
          sorted([](const Buffer& b) { return std::pair(b.span(), b.size); }),
          sorted([](const Buffer& b) { return std::pair(int64_t{-b.lifetime.begin}, b.size); })};
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
int64_t local_search(std::vector<Buffer>& buffers, std::vector<int> order, int64_t height,
                     int64_t bound) {
  std::vector<const Buffer*> placed;
  std::vector<Buffer> best = buffers;
  const int64_t work = static_cast<int64_t>(buffers.size() * buffers.size() / 2 + 1);
  const int64_t rounds = std::min<int64_t>(search_rounds, search_work / work);
  Random random;
  for (int64_t round = 0; round < rounds && height > bound; ++round) {
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
    const int64_t changed_height = place(buffers, changed, placed);
    if (changed_height <= height) {
      height = changed_height;
      order = std::move(changed);
      best = buffers;
    }
  }
  buffers = std::move(best);
  return height;
}

int64_t pack(std::vector<Buffer>& buffers, int64_t bound) {
  std::vector<const Buffer*> placed;
  std::vector<Buffer> best;
  std::vector<int> best_order;
  int64_t best_height = INT64_MAX;
  for (const std::vector<int>& order : candidate_orders(buffers)) {
    const int64_t height = place(buffers, order, placed);
    if (height < best_height) {
      best_height = height;
      best_order = order;
      best = buffers;
    }
    if (best_height == bound) break;
  }
  buffers = std::move(best);
  if (static_cast<double>(best_height) > search_above * static_cast<double>(bound)) {
    best_height = local_search(buffers, std::move(best_order), best_height, bound);
  }
  return best_height;
}

}  // namespace

std::vector<Bytes> live_bytes(const Program& program, const MemoryPlan& plan) {
  std::vector<int64_t> change(program.ops.size() + 1, 0);
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (program.tensors[i].persistent || plan.lifetimes[i].empty()) continue;
    change[static_cast<size_t>(plan.lifetimes[i].begin)] += plan.sizes[i].count;
    change[static_cast<size_t>(plan.lifetimes[i].end) + 1] -= plan.sizes[i].count;
  }
  std::vector<Bytes> live(program.ops.size());
  int64_t sum = plan.persistent.count;
  for (size_t i = 0; i < live.size(); ++i) {
    sum += change[i];
    live[i] = {sum};
  }
  return live;
}

MemoryPlan plan_memory(const Program& program, int64_t alignment) {
  MemoryPlan plan;
  plan.alignment = alignment;
  plan.lifetimes = lifetimes_of(program);
  plan.offsets.resize(program.tensors.size());
  plan.sizes.resize(program.tensors.size());
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (!plan.lifetimes[i].empty()) {
      plan.sizes[i] = round_up(bytes(program.tensors[i]), alignment);
    }
  }
  for (int role = 0; role < role_count; ++role) {
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      const Tensor& tensor = program.tensors[i];
      if (!tensor.persistent || tensor.role != static_cast<Role>(role)) continue;
      plan.offsets[i] = plan.persistent;
      plan.persistent += plan.sizes[i];
    }
  }

  const std::vector<Bytes> live = live_bytes(program, plan);
  const auto peak = std::max_element(live.begin(), live.end());
  plan.peak_op = live.empty() ? 0 : static_cast<int>(peak - live.begin());
  plan.lower_bound = live.empty() ? plan.persistent : *peak;

  std::vector<Buffer> buffers;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const bool at_peak = !plan.lifetimes[i].empty() && plan.lifetimes[i].begin <= plan.peak_op &&
                         plan.peak_op <= plan.lifetimes[i].end;
    if (at_peak) plan.at_peak[static_cast<size_t>(program.tensors[i].role)] += plan.sizes[i];
    if (program.tensors[i].persistent || plan.lifetimes[i].empty()) continue;
    buffers.push_back({.id = static_cast<TensorId>(i),
                       .lifetime = plan.lifetimes[i],
                       .size = plan.sizes[i].count});
  }
  const Bytes packed = {
      buffers.empty() ? 0 : pack(buffers, (plan.lower_bound - plan.persistent).count)};
  for (const Buffer& buffer : buffers) {
    plan.offsets[static_cast<size_t>(buffer.id)] = plan.persistent + Bytes{buffer.offset};
  }
  plan.arena = plan.persistent + packed;
  return plan;
}

Overlap find_overlap(const Program& program, const MemoryPlan& plan) {
  // Sweep over the ops: tensors that are alive are kept sorted by offset, where only neighbours
  // can be the first to overlap.
  struct Event {
    int op;
    bool begins;
    TensorId id;
  };
  const std::vector<Lifetime> lifetimes = lifetimes_of(program);  // not the plan's: of the ops
  std::vector<Event> events;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (lifetimes[i].empty() || plan.sizes[i].count == 0) continue;
    events.push_back({lifetimes[i].begin, true, static_cast<TensorId>(i)});
    events.push_back({lifetimes[i].end + 1, false, static_cast<TensorId>(i)});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.op, a.begins) < std::tuple(b.op, b.begins);  // ends come first
  });
  std::map<int64_t, TensorId> alive;  // by offset
  const auto end_of = [&](TensorId id) {
    return (plan.offsets[static_cast<size_t>(id)] + plan.sizes[static_cast<size_t>(id)]).count;
  };
  for (const Event& event : events) {
    const int64_t offset = plan.offsets[static_cast<size_t>(event.id)].count;
    if (!event.begins) {
      alive.erase(offset);
      continue;
    }
    const auto [position, inserted] = alive.emplace(offset, event.id);
    if (!inserted) return {position->second, event.id};
    const auto next = std::next(position);
    if (next != alive.end() && next->first < end_of(event.id)) return {event.id, next->second};
    if (position != alive.begin() && end_of(std::prev(position)->second) > offset) {
      return {std::prev(position)->second, event.id};
    }
  }
  return {};
}

}  // namespace plimsoll::step
