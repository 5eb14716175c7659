#include "plimsoll/planner/recompute.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "plimsoll/planner/budget.h"

namespace plimsoll::planner {

using step::Op;
using step::Phase;
using step::Program;
using step::TensorId;
using step::TensorSet;

namespace {

// "layers.3.mlp.up.out" -> "mlp.up.out".
std::string name_in_layer(const std::string& name) {
  if (!name.starts_with("layers.")) return name;
  return name.substr(name.find('.', 7) + 1);
}

bool is_fused_norm(const Op& op) {
  return std::holds_alternative<step::AddRmsNorm>(op.kind) ||
         std::holds_alternative<step::AddLayerNorm>(op.kind);
}

}  // namespace

std::vector<SavedGroup> saved_groups(const Program& program, Sizer& sizer) {
  std::vector<bool> saved(program.tensors.size());
  for (const TensorId id : step::saved_tensors(program)) saved[static_cast<size_t>(id)] = true;
  std::set<int> entered;  // layers
  std::vector<SavedGroup> groups;
  const auto add = [&](const Op& op, std::vector<TensorId> tensors, bool enters_layer = false) {
    std::erase_if(tensors, [&](TensorId id) { return !saved[static_cast<size_t>(id)]; });
    if (tensors.empty()) return;
    SavedGroup group = {.tensors = tensors,
                        .layer = op.layer,
                        .name = name_in_layer(program.tensor(tensors.front()).name),
                        .op_kind = std::string(kind_name(op)),
                        .enters_layer = enters_layer};
    for (const TensorId id : tensors) {
      group.bytes += bytes(program.tensor(id));
      saved[static_cast<size_t>(id)] = false;  // grouped
    }
    groups.push_back(std::move(group));
  };
  for (const Op& op : program.ops) {
    if (op.phase != Phase::forward || op.layer < 0) continue;
    std::vector<TensorId> outputs;
    for (const step::Operand& output : op.outputs) outputs.push_back(output.tensor);
    const bool first_of_layer = entered.insert(op.layer).second;
    if (is_fused_norm(op)) {  // the residual sum is kept or dropped apart from what follows it
      add(op, {outputs.front()}, first_of_layer);
      outputs.erase(outputs.begin());
    }
    add(op, outputs);
  }
  // The layers repeat: price each group of the first layer that has it, and of no other.
  std::unordered_map<std::string, Seconds> prices;
  const Seconds nothing = sizer.size(std::vector<bool>(program.tensors.size())).recompute;
  for (SavedGroup& group : groups) {
    const std::string key = (group.layer == 0 ? "first " : "") + group.name;
    auto [entry, inserted] = prices.try_emplace(key);
    if (inserted) {
      std::vector<bool> dropped(program.tensors.size());
      for (const TensorId id : group.tensors) dropped[static_cast<size_t>(id)] = true;
      entry->second = {sizer.size(dropped).recompute.count - nothing.count};
    }
    group.recompute = entry->second;
  }
  return groups;
}

std::vector<size_t> drop_order(const std::vector<SavedGroup>& groups) {
  std::vector<size_t> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto value = [&](size_t i) {
    return static_cast<double>(groups[i].bytes.count) / std::max(groups[i].recompute.count, 1e-12);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (groups[a].name == groups[b].name) return groups[a].layer < groups[b].layer;
    return value(a) > value(b);
  });
  return order;
}

std::vector<bool> tensors_of(const std::vector<SavedGroup>& groups, const std::vector<bool>& flags,
                             size_t tensors) {
  std::vector<bool> all(tensors);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!flags[i]) continue;
    for (const TensorId id : groups[i].tensors) all[static_cast<size_t>(id)] = true;
  }
  return all;
}

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

Error unknown_policy(const std::string& policy) {
  return Error(Exit::usage, fmt::format("step.checkpointing = \"{}\" is not a policy.", policy),
               "Use none, full, layers:K, selective:NAMES (ops or saved tensors, with commas),\n"
               "budget:SIZE (\"budget:12 GiB\") or budget:auto.");
}

TensorSet full(const std::vector<SavedGroup>& groups, int64_t layers) {
  TensorSet dropped;
  for (const SavedGroup& group : groups) {
    if (group.layer < layers && !group.enters_layer) {
      dropped.insert(group.tensors.begin(), group.tensors.end());
    }
  }
  return dropped;
}

TensorSet first_layers(const std::string& policy, const std::string& count,
                       const std::vector<SavedGroup>& groups, const PolicyContext& context) {
  int64_t layers = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), layers);
  if (error != std::errc() || end != count.data() + count.size()) throw unknown_policy(policy);
  if (layers < 1 || layers > context.layers) {
    throw Error(Exit::usage,
                fmt::format("step.checkpointing = \"{}\": the model has {} layers.", policy,
                            context.layers),
                fmt::format("Use a number from 1 to {}.", context.layers));
  }
  return full(groups, layers);
}

TensorSet selective(const std::string& policy, const std::string& names,
                    const std::vector<SavedGroup>& groups) {
  TensorSet dropped;
  for (const std::string& wanted : split(names)) {
    bool known = false;
    for (const SavedGroup& group : groups) {
      if (group.name != wanted && group.op_kind != wanted) continue;
      known = true;
      dropped.insert(group.tensors.begin(), group.tensors.end());
    }
    if (known) continue;
    std::set<std::string> all;
    for (const SavedGroup& group : groups) {
      all.insert(group.name);
      all.insert(group.op_kind);
    }
    throw Error(Exit::usage,
                fmt::format("step.checkpointing = \"{}\": nothing that is saved is called {}.",
                            policy, wanted),
                fmt::format("Ops and tensors: {}.", fmt::join(all, ", ")));
  }
  return dropped;
}

Dropped within_budget(Bytes budget, const std::vector<SavedGroup>& groups,
                      const PolicyContext& context) {
  const BudgetChoice choice = fit_budget(budget, groups, context.sizer);
  const std::vector<bool>& flags = choice.dropped ? *choice.dropped : choice.least_dropped;
  Dropped result;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (flags[i]) result.tensors.insert(groups[i].tensors.begin(), groups[i].tensors.end());
  }
  if (!choice.dropped) result.least = choice.least;
  return result;
}

}  // namespace

Dropped dropped_by(const std::string& policy, const PolicyContext& context) {
  if (policy == "none") return {};
  const std::vector<SavedGroup> groups = saved_groups(context.program, context.sizer);
  const size_t colon = policy.find(':');
  const std::string kind = policy.substr(0, colon);
  const std::string argument = colon == std::string::npos ? "" : policy.substr(colon + 1);
  if (policy == "full") return {full(groups, context.layers), {}};
  if (kind == "layers") return {first_layers(policy, argument, groups, context), {}};
  if (kind == "selective") return {selective(policy, argument, groups), {}};
  if (policy == "budget:auto") return within_budget(context.capacity, groups, context);
  if (kind == "budget") {
    return within_budget(parse_bytes(argument, "step.checkpointing"), groups, context);
  }
  throw unknown_policy(policy);
}

std::vector<FrontPoint> frontier(const PolicyContext& context, Seconds kept, int64_t micro_steps,
                                 int points) {
  const std::vector<SavedGroup> groups = saved_groups(context.program, context.sizer);
  const std::vector<size_t> order = drop_order(groups);
  const Sized nothing = context.sizer.size(std::vector<bool>(context.program.tensors.size()));
  std::vector<FrontPoint> front;
  const size_t last = order.size();
  size_t previous = last + 1;
  for (int i = 0; i < points; ++i) {
    const size_t count =
        last * static_cast<size_t>(i) / static_cast<size_t>(std::max(1, points - 1));
    if (count == previous) continue;
    previous = count;
    std::vector<bool> flags(groups.size());
    for (size_t j = 0; j < count; ++j) flags[order[j]] = true;
    const std::vector<bool> dropped = tensors_of(groups, flags, context.program.tensors.size());
    const Sized sized = context.sizer.size(dropped);
    // A point that needs no less memory than a cheaper one is not on the front.
    if (!front.empty() && sized.arena_bound >= front.back().arena) continue;
    const double more = sized.recompute.count - nothing.recompute.count;
    const FrontPoint point = {
        .dropped_groups = count,
        .arena = context.sizer.arena(dropped),
        .recompute = sized.recompute_flops,
        .step = {kept.count + static_cast<double>(micro_steps) * more}};
    if (front.empty() || point.arena < front.back().arena) front.push_back(point);
  }
  return front;
}

}  // namespace plimsoll::planner
