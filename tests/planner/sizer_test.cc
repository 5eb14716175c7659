// A candidate that is sized without building its program is the plan of that program, to the byte.
#include "plimsoll/planner/sizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plimsoll/step/memory_plan.h"
#include "plimsoll/step/passes/recompute.h"
#include "plimsoll/step/training_spec.h"

namespace plimsoll::planner {
namespace {

step::TrainingSpec random_spec() {
  step::TrainingSpec spec;
  const bool gpt2 = *rc::gen::arbitrary<bool>();
  spec.model = model::resolve({.family = gpt2 ? model::Family::gpt2 : model::Family::llama,
                               .layers = *rc::gen::inRange<int64_t>(1, 5),
                               .hidden = 64,
                               .heads = 4,
                               .ffn_hidden = 160,
                               .vocab = 64,
                               .max_positions = gpt2 ? 2048 : 0,
                               .qk_norm = !gpt2 && *rc::gen::arbitrary<bool>()});
  const int64_t sequence = *rc::gen::element<int64_t>(64, 192, 512);
  spec.step = {.precision = *rc::gen::element(step::Precision::fp32, step::Precision::bf16),
               .micro_batch = 2,
               .global_batch = 4,
               .sequence_length = sequence,
               .head_chunk = 64,
               .ffn_chunk = *rc::gen::element<int64_t>(0, 128)};
  if (spec.step.precision == step::Precision::bf16) {
    spec.recipe.name = *rc::gen::element(step::Recipe::none, step::Recipe::mxfp8,
                                         step::Recipe::fp8_delayed);
  }
  return spec;
}

RC_GTEST_PROP(Sizer, SaysWhatThePlanOfTheProgramSays, ()) {
  const step::TrainingSpec spec = random_spec();
  const step::TrainingStep step = step::build(spec);
  // Scratch that depends on the kind, so that a norm which lost its sum shows.
  const step::ScratchModel scratch = {
      "test", [](const step::Program& program, const step::Op& op) {
        return Bytes{static_cast<int64_t>(op.kind.index() % 5) * 700 + bytes_read(program, op).count / 9};
      }};
  const cost::DeviceProfile device = cost::nominal_cpu();
  Sizer sizer(step.program, scratch, device);
  for (int i = 0; i < 3; ++i) {
    std::vector<bool> flags(step.program.tensors.size());
    step::TensorSet dropped;
    const bool most = *rc::gen::arbitrary<bool>();
    for (const step::TensorId id : step::saved_tensors(step.program)) {
      if (step.program.tensor(id).layer < 0) continue;
      if (*rc::gen::inRange(0, 4) < (most ? 1 : 3)) continue;
      flags[static_cast<size_t>(id)] = true;
      dropped.insert(id);
    }
    const step::Program program = with_workspaces(step::recompute(step.program, dropped), scratch);
    const step::MemoryPlan plan = step::plan_memory(program, device.alignment);
    const Sized sized = sizer.size(flags);
    RC_ASSERT(sized.arena_bound == plan.lower_bound);
    RC_ASSERT(sizer.arena(flags) == plan.arena);
    double seconds = 0;
    for (const step::Op& op : program.ops) {
      if (op.phase == step::Phase::recompute) seconds += cost::op_time(program, op, device).count;
    }
    RC_ASSERT(std::abs(sized.recompute.count - seconds) <= 1e-9 * seconds);
    RC_ASSERT(sized.recompute_flops == flops(program, step::Phase::recompute));
  }
}

}  // namespace
}  // namespace plimsoll::planner
