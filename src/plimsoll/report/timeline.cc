#include "plimsoll/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::report {

namespace {

// Setup runs before the step and is left out; the rest is drawn from its first op on.
size_t first_step_op(const step::Program& program) {
  const auto first = std::find_if(program.ops.begin(), program.ops.end(), [](const step::Op& op) {
    return op.phase != step::Phase::setup;
  });
  return static_cast<size_t>(first - program.ops.begin());
}

// The head's chunks alternate between forward and backward: they are one band of their own.
std::string band_of(const step::Program& program, size_t op, size_t first_backward,
                    size_t last_forward) {
  if (first_backward <= op && op <= last_forward) return "head";
  return std::string(name(program.ops[op].phase));
}

std::vector<Band> bands(const step::Program& program, size_t begin) {
  size_t first_backward = program.ops.size(), last_forward = begin;
  for (size_t i = program.ops.size(); i-- > begin;) {
    if (program.ops[i].phase == step::Phase::backward) first_backward = i;
    if (program.ops[i].phase == step::Phase::forward) last_forward = std::max(last_forward, i);
  }
  std::vector<Band> all;
  for (size_t i = begin; i < program.ops.size(); ++i) {
    const std::string label = band_of(program, i, first_backward, last_forward);
    const double x = static_cast<double>(i - begin);
    if (all.empty() || all.back().label != label) all.push_back({x, x, label});
    all.back().end = x + 1;
  }
  return all;
}

}  // namespace

StackedChart memory_timeline(const step::Program& program, const step::MemoryPlan& memory) {
  const size_t begin = first_step_op(program);
  const size_t ops = program.ops.size() - begin;
  std::vector<std::vector<double>> live(step::role_count, std::vector<double>(ops, 0.0));
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const step::Lifetime& lifetime = memory.lifetimes[i];
    std::vector<double>& row = live[static_cast<size_t>(program.tensors[i].role)];
    for (int op = std::max(lifetime.begin, static_cast<int>(begin)); op <= lifetime.end; ++op) {
      row[static_cast<size_t>(op) - begin] += static_cast<double>(memory.sizes[i].count);
    }
  }
  StackedChart chart = {.title = "Memory over one step",
                        .x_label = "operation",
                        .y_label = "live bytes",
                        .bands = bands(program, begin)};
  for (int role = 0; role < step::role_count; ++role) {
    std::vector<double>& row = live[static_cast<size_t>(role)];
    if (std::all_of(row.begin(), row.end(), [](double b) { return b == 0; })) continue;
    chart.labels.emplace_back(name(static_cast<step::Role>(role)));
    chart.layers.push_back(std::move(row));
  }
  if (static_cast<size_t>(memory.peak_op) >= begin && ops > 0) {
    chart.marker = Marker{static_cast<double>(static_cast<size_t>(memory.peak_op) - begin),
                          "peak " + to_text(memory.lower_bound)};
  }
  return chart;
}

}  // namespace plimsoll::report
