#include "plimsoll/planner/plan_report.h"

#include <algorithm>
#include <map>

namespace plimsoll::planner {

using step::Phase;
using step::Role;

namespace {

// "layers.17.mlp.up" -> "layers.*.mlp.up".
std::string without_layer(const std::string& name) {
  if (!name.starts_with("layers.")) return name;
  const size_t end = name.find('.', 7);
  return end == std::string::npos ? name : "layers.*" + name.substr(end);
}

double share(Bytes part, Bytes whole) {
  return 100.0 * static_cast<double>(part.count) /
         static_cast<double>(std::max<int64_t>(1, whole.count));
}

// What the policy does to this step, and when it does nothing.
std::string checkpointing_effect(const PlanView& plan) {
  const std::string& policy = plan.config.checkpointing;
  const Bytes arena = plan.memory.arena, without = plan.without_checkpointing;
  if (flops(plan.step.program, Phase::recompute).count == 0) {
    return fmt::format("{}: nothing is dropped, the step is that of \"none\"", policy);
  }
  if (arena >= without) {
    return fmt::format("{}: recomputes but saves nothing, \"none\" needs {}; use \"none\"", policy,
                       to_text(without));
  }
  return fmt::format("{}: saves {} of {}", policy, to_text(without - arena), to_text(without));
}

}  // namespace

std::vector<LiveTensor> largest_at_peak(const step::Program& program,
                                        const step::MemoryPlan& memory) {
  std::map<std::pair<std::string, Role>, LiveTensor> merged;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const step::Lifetime& lifetime = memory.lifetimes[i];
    if (lifetime.empty() || memory.peak_op < lifetime.begin || lifetime.end < memory.peak_op) {
      continue;
    }
    const step::Tensor& tensor = program.tensors[i];
    const std::string name = without_layer(tensor.name);
    auto [entry, inserted] = merged.try_emplace(
        {name, tensor.role}, LiveTensor{.name = name, .role = tensor.role, .count = 0});
    entry->second.count += 1;
    entry->second.bytes += memory.sizes[i];
  }
  std::vector<LiveTensor> sorted;
  for (auto& [key, tensor] : merged) sorted.push_back(std::move(tensor));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  return sorted;
}

TokenFlops flops_per_token(const step::Program& program, const step::StepConfig& config) {
  const double micro = static_cast<double>(config.micro_batch * config.sequence_length);
  const double global = static_cast<double>(config.global_batch * config.sequence_length);
  return {.forward = flops(program, Phase::forward).count / micro,
          .backward = flops(program, Phase::backward).count / micro,
          .recompute = flops(program, Phase::recompute).count / micro,
          .optimizer = flops(program, Phase::optimizer).count / global};
}

std::string peak_place(const step::Program& program, const step::MemoryPlan& memory) {
  if (program.ops.empty()) return "nowhere";
  const step::Op& op = program.ops[static_cast<size_t>(memory.peak_op)];
  const std::string& output = program.tensor(op.outputs.front().tensor).name;
  return fmt::format("{}, {} of {} (op {} of {})", name(op.phase), kind_name(op), output,
                     memory.peak_op, program.ops.size());
}

std::string plan_text(const PlanView& plan) {
  const step::Program& program = plan.step.program;
  const step::MemoryPlan& memory = plan.memory;
  std::string text;
  const auto line = [&](std::string_view label, std::string value) {
    text += fmt::format("{:<16}{}\n", label, value);
  };
  const int64_t parameters = model::parameter_count(plan.model);
  line("model",
       fmt::format("{}{} parameters: {} layers, hidden {}, {} heads, {} query groups, "
                   "vocabulary {}",
                   plan.model.preset.empty() ? "" : plan.model.preset + ", ",
                   to_count_text(static_cast<double>(parameters)), plan.model.layers,
                   plan.model.hidden, plan.model.heads, plan.model.query_groups, plan.model.vocab));
  line("step", fmt::format("{} sequences of {} tokens in micro-batches of {}, {}",
                           plan.config.global_batch, plan.config.sequence_length,
                           plan.config.micro_batch, name(plan.config.precision)));
  const TokenFlops flops = flops_per_token(program, plan.config);
  const std::string recompute =
      flops.recompute > 0 ? fmt::format(", recompute {}", to_text(Flops{flops.recompute})) : "";
  line("compute",
       fmt::format(
           "{} per token (forward {}, backward {}{}), {} per step", to_text(Flops{flops.total()}),
           to_text(Flops{flops.forward}), to_text(Flops{flops.backward}), recompute,
           to_text(Flops{flops.total() * static_cast<double>(plan.config.global_batch *
                                                             plan.config.sequence_length)})));
  line("device", plan.device);
  if (!plan.recipe.empty()) line("recipe", plan.recipe + "; emulated by bf16 products");
  if (plan.config.checkpointing != "none") line("checkpointing", checkpointing_effect(plan));

  text += fmt::format("\nmemory at the peak: {}\n", peak_place(program, memory));
  for (int role = 0; role < step::role_count; ++role) {
    const Bytes bytes = memory.at_peak[static_cast<size_t>(role)];
    if (bytes.count == 0) continue;
    text += fmt::format("  {:<12}{:>12} {:>16} B {:>6.1f} %\n", name(static_cast<Role>(role)),
                        to_text(bytes), bytes.count, share(bytes, memory.lower_bound));
  }
  text += fmt::format("  {:<12}{:>12} {:>16} B   packed at {:.4f} x the lower bound\n", "arena",
                      to_text(memory.arena), memory.arena.count, memory.packing());
  text += fmt::format("  {:<12}{:>12} {:>16} B   {}\n", "available", to_text(plan.capacity),
                      plan.capacity.count, plan.capacity_source);

  if (plan.reserve.count > 0) {
    text += fmt::format("  {:<12}{:>12} {:>16} B   for stacks, libraries, the writer, file pages\n",
                        "reserve", to_text(plan.reserve), plan.reserve.count);
  }
  if (plan.host_snapshot.count > 0) {
    text += fmt::format("  {:<12}{:>12} {:>16} B   host memory, the copy a checkpoint is written from\n",
                        "snapshot", to_text(plan.host_snapshot), plan.host_snapshot.count);
  }

  text += "\nlargest tensors at the peak\n";
  const std::vector<LiveTensor> tensors = largest_at_peak(program, memory);
  for (size_t i = 0; i < std::min<size_t>(8, tensors.size()); ++i) {
    const LiveTensor& t = tensors[i];
    text += fmt::format("  {:<44}{:<11}{:>11} {:>6.1f} %{}\n", t.name, name(t.role),
                        to_text(t.bytes), share(t.bytes, memory.lower_bound),
                        t.count > 1 ? fmt::format("  x {}", t.count) : "");
  }
  return text;
}

nlohmann::json plan_json(const PlanView& plan) {
  const step::Program& program = plan.step.program;
  const step::MemoryPlan& memory = plan.memory;
  const TokenFlops flops = flops_per_token(program, plan.config);
  nlohmann::json roles = nlohmann::json::object();
  for (int role = 0; role < step::role_count; ++role) {
    roles[std::string(name(static_cast<Role>(role)))] =
        memory.at_peak[static_cast<size_t>(role)].count;
  }
  nlohmann::json largest = nlohmann::json::array();
  const std::vector<LiveTensor> tensors = largest_at_peak(program, memory);
  for (size_t i = 0; i < std::min<size_t>(20, tensors.size()); ++i) {
    largest.push_back({{"name", tensors[i].name},
                       {"role", name(tensors[i].role)},
                       {"count", tensors[i].count},
                       {"bytes", tensors[i].bytes.count}});
  }
  return {{"model",
           {{"preset", plan.model.preset},
            {"parameters", model::parameter_count(plan.model)},
            {"layers", plan.model.layers},
            {"hidden", plan.model.hidden},
            {"heads", plan.model.heads},
            {"query_groups", plan.model.query_groups},
            {"head_dim", plan.model.head_dim},
            {"ffn_hidden", plan.model.ffn_hidden},
            {"vocab", plan.model.vocab}}},
          {"step",
           {{"precision", name(plan.config.precision)},
            {"micro_batch", plan.config.micro_batch},
            {"global_batch", plan.config.global_batch},
            {"sequence_length", plan.config.sequence_length},
            {"head_chunk", plan.config.head_chunk},
            {"ffn_chunk", plan.config.ffn_chunk},
            {"checkpointing", plan.config.checkpointing}}},
          {"recipe", plan.recipe},
          {"device", plan.device},
          {"flops_per_token",
           {{"forward", flops.forward},
            {"backward", flops.backward},
            {"recompute", flops.recompute},
            {"optimizer", flops.optimizer},
            {"total", flops.total()}}},
          {"memory",
           {{"arena_bytes", memory.arena.count},
            {"lower_bound_bytes", memory.lower_bound.count},
            {"packing", memory.packing()},
            {"without_checkpointing_bytes", plan.without_checkpointing.count},
            {"persistent_bytes", memory.persistent.count},
            {"at_peak_bytes", roles},
            {"peak", peak_place(program, memory)},
            {"largest_at_peak", largest},
            {"capacity_bytes", plan.capacity.count},
            {"capacity_source", plan.capacity_source},
            {"reserve_bytes", plan.reserve.count},
            {"host_snapshot_bytes", plan.host_snapshot.count},
            {"fits", memory.arena <= plan.capacity}}}};
}

Error does_not_fit(const PlanView& plan, std::vector<WhatIf> changes) {
  std::string advice = "largest at the peak:";
  const std::vector<LiveTensor> tensors = largest_at_peak(plan.step.program, plan.memory);
  for (size_t i = 0; i < std::min<size_t>(3, tensors.size()); ++i) {
    advice +=
        fmt::format("{} {} {}", i == 0 ? "" : ",", tensors[i].name, to_text(tensors[i].bytes));
  }
  std::erase_if(changes, [&](const WhatIf& c) { return c.arena >= plan.memory.arena; });
  std::stable_sort(changes.begin(), changes.end(), [&](const WhatIf& a, const WhatIf& b) {
    const bool a_fits = a.arena <= plan.capacity, b_fits = b.arena <= plan.capacity;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a.time_per_token < b.time_per_token : a.arena < b.arena;
  });
  const bool any_fits = !changes.empty() && changes.front().arena <= plan.capacity;
  if (any_fits) std::erase_if(changes, [&](const WhatIf& c) { return c.arena > plan.capacity; });
  changes.resize(std::min<size_t>(3, changes.size()));
  for (const WhatIf& change : changes) {
    advice += fmt::format("\n{:<34} -{:<11} time/token {:+.1f} %{}", change.setting,
                          to_text(plan.memory.arena - change.arena),
                          100 * (change.time_per_token - 1), any_fits ? "" : ", still too much");
  }
  if (!any_fits) advice += "\nNo single setting is enough: combine them, or use a smaller model.";
  return Error(Exit::does_not_fit,
               fmt::format("This does not fit: {} needed, {} usable ({}); peak in {}.",
                           to_text(plan.memory.arena), to_text(plan.capacity), plan.capacity_source,
                           peak_place(plan.step.program, plan.memory)),
               advice);
}

}  // namespace plimsoll::planner
