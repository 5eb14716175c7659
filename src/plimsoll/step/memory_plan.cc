#include "plimsoll/step/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "plimsoll/step/streams.h"

namespace plimsoll::step {

namespace {

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
  std::vector<size_t> buffer_tensors;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const bool at_peak = !plan.lifetimes[i].empty() && plan.lifetimes[i].begin <= plan.peak_op &&
                         plan.peak_op <= plan.lifetimes[i].end;
    if (at_peak) plan.at_peak[static_cast<size_t>(program.tensors[i].role)] += plan.sizes[i];
    if (program.tensors[i].persistent || plan.lifetimes[i].empty()) continue;
    buffers.push_back({.lifetime = plan.lifetimes[i], .size = plan.sizes[i].count});
    buffer_tensors.push_back(i);
  }
  const Placement placement =
      place_buffers(buffers, (plan.lower_bound - plan.persistent).count);
  for (size_t i = 0; i < buffers.size(); ++i) {
    plan.offsets[buffer_tensors[i]] = plan.persistent + Bytes{buffers[i].offset};
  }
  plan.arena = plan.persistent + Bytes{placement.height};
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
