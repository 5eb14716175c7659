#include "plimsoll/train/matmul_rate.h"

#include <algorithm>
#include <chrono>

#include "plimsoll/runtime/executor.h"

namespace plimsoll::train {

double measured_matmul_rate(const runtime::Backend& backend, Format format) {
  constexpr int64_t size = 1024;
  constexpr double flops = 2.0 * size * size * size;
  step::Program program;
  const auto add = [&](const char* name, Format tensor_format) {
    return add_tensor(program, {.name = name,
                                .type = {{size, size}, tensor_format},
                                .role = step::Role::input,
                                .persistent = true});
  };
  const step::TensorId a = add("a", format), b = add("b", format), c = add("c", Format::f32);
  append(program, {.kind = step::MatMul{.product = step::Product::forward},
                   .inputs = {{a}, {b}},
                   .outputs = {{c}}});
  program = runtime::with_workspaces(std::move(program), backend);
  const step::MemoryPlan plan = step::plan_memory(program);
  const runtime::Executor executor(program, plan, backend);

  using Clock = std::chrono::steady_clock;
  double best = 0, total = 0;
  for (int i = 0; i < 200 && total < 0.5; ++i) {
    const auto begin = Clock::now();
    executor.run(0, 1);
    executor.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    total += seconds;
    best = std::max(best, flops / seconds);
  }
  return best;
}

}  // namespace plimsoll::train
