#include "plimsoll/train/planned_run.h"

#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/cpu/scratch.h"

namespace plimsoll::train {

namespace {

// Left of what the machine has, for what is not in the arena: stacks, libraries, the checkpoint's
// writer, pages of the corpus. 3 %, between 256 MiB and 4 GiB, of a small machine a quarter.
Bytes reserve_of(Bytes available) {
  const int64_t share = available.count / 100 * 3;
  return {std::min(available.count / 4,
                   std::clamp(share, int64_t{256} << 20, int64_t{4} << 30))};
}

planner::Capacity capacity_of(const config::Config& config,
                              const runtime::Backend::Capacity& machine) {
  if (!config.train.memory_limit.empty()) {  // said by the user: taken as it is
    return {parse_bytes(config.train.memory_limit, "train.memory_limit"), {}, "train.memory_limit"};
  }
  return {machine.bytes, reserve_of(machine.bytes), machine.source};
}

}  // namespace

planner::Request request_of(const config::Config& config) {
  return {config::spec(config), config.checkpoint.in_background == config::InBackground::automatic
                                    ? planner::Snapshot::automatic
                                : config.checkpoint.in_background == config::InBackground::yes
                                    ? planner::Snapshot::yes
                                    : planner::Snapshot::no};
}

planner::Target cpu_target(const config::Config& config) {
  return {cpu::scratch_model(cpu::product_settings(config.train.threads)), cost::nominal_cpu(),
          capacity_of(config, cpu::available_memory())};
}

planner::Target target_of(const config::Config& config, const runtime::Backend& backend) {
  return {{backend.description(),
           [&backend](const step::Program& program, const step::Op& op) {
             return backend.workspace(program, op);
           }},
          cost::nominal_cpu(),
          capacity_of(config, backend.capacity())};
}

PlannedRun plan_run(const config::Config& config, const planner::Target& target) {
  return {planner::plan_run(request_of(config), target), config};
}

PlannedRun plan_run(const config::Config& config, const runtime::Backend& backend) {
  return plan_run(config, target_of(config, backend));
}

}  // namespace plimsoll::train
