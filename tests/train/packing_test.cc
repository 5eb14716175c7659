// Every preset packs within 2 % of the lower bound, whatever is checkpointed.
#include <gtest/gtest.h>

#include "plimsoll/model/model_config.h"
#include "plimsoll/train/planned_run.h"
#include "tests/runtime/test_backend.h"

namespace plimsoll::train {
namespace {

double packing(config::Config config, const std::string& checkpointing,
               const runtime::Backend& backend) {
  config.step.checkpointing = checkpointing;
  return plan_run(config, backend).memory.packing();
}

config::Config config_of(const std::string& preset, step::Precision precision) {
  config::Config config;
  config.model = model::preset(preset);
  config.step.precision = precision;
  config.step.micro_batch = 2;
  config.step.sequence_length = 512;
  return config::resolve(config);
}

TEST(Packing, OfEveryPresetWithFullCheckpointing) {
  const auto backend = runtime::make_test_backend(2);
  for (const model::Preset& preset : model::presets()) {
    const std::string name = preset.name;
    EXPECT_LE(packing(config_of(name, step::Precision::bf16), "full", *backend), 1.02) << name;
  }
}

TEST(PackingLong, OfEveryPresetUnderEveryPolicy) {
  const auto backend = runtime::make_test_backend(2);
  for (const model::Preset& preset : model::presets()) {
    const std::string name = preset.name;
    for (const auto precision : {step::Precision::bf16, step::Precision::fp32}) {
      const config::Config config = config_of(name, precision);
      const PlannedRun none = plan_run(config, *backend);
      std::vector<std::string> policies = {"none", "full", "layers:1", "selective:attention"};
      for (const int percent : {75, 50, 25}) {
        const Bytes transient = none.memory.arena - none.memory.persistent;
        policies.push_back(fmt::format(
            "budget:{}", none.memory.persistent.count + transient.count * percent / 100));
      }
      for (const std::string& policy : policies) {
        EXPECT_LE(packing(config, policy, *backend), 1.02) << name << ", " << policy;
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::train
