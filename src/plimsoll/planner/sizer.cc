#include "plimsoll/planner/sizer.h"

#include <algorithm>

namespace plimsoll::planner {

using step::Lifetime;
using step::Recomputation;
using step::TensorId;

namespace {

constexpr int64_t placed_work = 60;  // a buffer placed takes about as long as so many operands

}  // namespace

Sizer::Sizer(const step::Program& program, const step::ScratchModel& scratch,
             const cost::DeviceProfile& device)
    : program_(program), scratch_(scratch), device_(device), rule_(program) {
  for (const step::Tensor& tensor : program.tensors) {
    sizes_.push_back(round_up(bytes(tensor), device.alignment).count);
    persistent_.push_back(tensor.persistent);
    if (tensor.persistent) persistent_bytes_ += sizes_.back();
  }
  ops_.reserve(program.ops.size());
  for (const step::Op& op : program.ops) ops_.push_back(measure(op));
  norms_.resize(program.ops.size());
}

Sizer::OpSize Sizer::measure(const step::Op& op) const {
  const int64_t scratch = scratch_.workspace(program_, op).count;
  return {.workspace = round_up({(scratch + 3) / 4 * 4}, device_.alignment).count,
          .seconds = cost::op_time(program_, op, device_).count,
          .flops = flops(program_, op).count};
}

const Sizer::OpSize& Sizer::of(const Recomputation::Entry& entry) {
  const auto op = static_cast<size_t>(entry.op);
  if (!entry.without_sum) return ops_[op];
  if (!norms_[op]) norms_[op] = measure(op_of(program_, entry));
  return *norms_[op];
}

// Fills lifetimes_; returns the most bytes that live at once, without the persistent ones.
int64_t Sizer::find_lifetimes(const Recomputation& recomputation) {
  const size_t entries = recomputation.entries.size();
  work_ += static_cast<int64_t>(recomputation.operands.size());
  lifetimes_.assign(sizes_.size() + recomputation.copies.size(), Lifetime{});
  for (size_t i = 0; i < entries; ++i) {
    const Recomputation::Entry& entry = recomputation.entries[i];
    const TensorId* operand = recomputation.operands.data() + entry.operands;
    for (const TensorId* const end = operand + entry.inputs + entry.outputs; operand != end;
         ++operand) {
      Lifetime& lifetime = lifetimes_[static_cast<size_t>(*operand)];
      if (lifetime.empty()) lifetime.begin = static_cast<int>(i);
      lifetime.end = static_cast<int>(i);
    }
  }
  change_.assign(entries + 1, 0);
  for (size_t id = 0; id < lifetimes_.size(); ++id) {
    const Lifetime& lifetime = lifetimes_[id];
    if (lifetime.empty()) continue;
    const size_t source =
        id < sizes_.size() ? id
                           : static_cast<size_t>(recomputation.copies[id - sizes_.size()].of);
    if (persistent_[source]) continue;
    change_[static_cast<size_t>(lifetime.begin)] += sizes_[source];
    change_[static_cast<size_t>(lifetime.end) + 1] -= sizes_[source];
  }
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < entries; ++i) {
    live += change_[i];
    most = std::max(most, live + of(recomputation.entries[i]).workspace);
  }
  return most;
}

Sized Sizer::size(const std::vector<bool>& dropped) {
  const Recomputation& recomputation = rule_.apply(dropped);
  Sized sized = {.arena_bound = {persistent_bytes_ + find_lifetimes(recomputation)}};
  for (const Recomputation::Entry& entry : recomputation.entries) {
    // The chunks of an FFN are recomputed whatever is dropped.
    const bool again = entry.again || program_.ops[static_cast<size_t>(entry.op)].phase ==
                                          step::Phase::recompute;
    if (!again) continue;
    sized.recompute.count += of(entry).seconds;
    sized.recompute_flops.count += of(entry).flops;
  }
  return sized;
}

Bytes Sizer::arena(const std::vector<bool>& dropped) {
  const Recomputation& recomputation = rule_.apply(dropped);
  const int64_t bound = find_lifetimes(recomputation);
  // In the order in which plan_memory meets them: tensors, copies, workspaces.
  std::vector<step::Buffer> buffers;
  for (size_t id = 0; id < lifetimes_.size(); ++id) {
    const size_t source =
        id < sizes_.size() ? id
                           : static_cast<size_t>(recomputation.copies[id - sizes_.size()].of);
    if (persistent_[source] || lifetimes_[id].empty()) continue;
    buffers.push_back({.lifetime = lifetimes_[id], .size = sizes_[source]});
  }
  for (size_t i = 0; i < recomputation.entries.size(); ++i) {
    const int64_t workspace = of(recomputation.entries[i]).workspace;
    if (workspace == 0) continue;
    buffers.push_back({.lifetime = {static_cast<int>(i), static_cast<int>(i)}, .size = workspace});
  }
  const step::Placement placement = place_buffers(buffers, bound);
  work_ += placed_work * placement.work;
  return {persistent_bytes_ + placement.height};
}

}  // namespace plimsoll::planner
