#include "plimsoll/report/explain.h"

#include <algorithm>
#include <map>

#include "plimsoll/report/page.h"
#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

namespace {

bool live_at(const step::Lifetime& lifetime, int op) {
  return !lifetime.empty() && lifetime.begin <= op && op <= lifetime.end;
}

// Bytes of each layer that are live at the peak, outside the layers under -1.
std::map<int, Bytes> bytes_by_layer(const step::Program& program, const step::MemoryPlan& memory) {
  std::map<int, Bytes> layers;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (!live_at(memory.lifetimes[i], memory.peak_op)) continue;
    layers[program.tensors[i].layer] += memory.sizes[i];
  }
  return layers;
}

// Layers of equal size told as one line: "layers 0-30  1.1 GiB each".
std::vector<std::string> layer_lines(const std::map<int, Bytes>& layers) {
  std::vector<std::string> lines;
  for (auto begin = layers.begin(); begin != layers.end();) {
    auto end = std::next(begin);
    auto last = begin;
    while (begin->first >= 0 && end != layers.end() && end->second == begin->second) last = end++;
    const std::string size = to_text(begin->second);
    if (begin->first < 0) {
      lines.push_back(fmt::format("outside the layers   {:>10}", size));
    } else if (last == begin) {
      lines.push_back(fmt::format("layer {:<14} {:>10}", begin->first, size));
    } else {
      lines.push_back(fmt::format("layers {:<13} {:>10} each",
                                  fmt::format("{}-{}", begin->first, last->first), size));
    }
    begin = end;
  }
  return lines;
}

std::string change_line(const planner::WhatIf& change, Bytes arena, Bytes capacity) {
  const bool less = change.arena <= arena;
  const Bytes difference = less ? arena - change.arena : change.arena - arena;
  return fmt::format("{:<34} {:>10}  {}{:<10} time/token {:+5.1f} %  {}", change.setting,
                     to_text(change.arena), less ? "-" : "+", to_text(difference),
                     100 * (change.time_per_token - 1),
                     change.arena <= capacity ? "fits" : "does not fit");
}

std::string note_at(const step::Program& program, const step::MemoryPlan& memory, int op,
                    const std::vector<int>& by_size, Bytes live) {
  const step::Op& operation = program.ops[static_cast<size_t>(op)];
  std::string note =
      fmt::format("op {}: {} {} of {}\n{} live", op, name(operation.phase), kind_name(operation),
                  program.tensor(operation.outputs.front().tensor).name, to_text(live));
  int shown = 0;
  for (const int id : by_size) {
    if (!live_at(memory.lifetimes[static_cast<size_t>(id)], op)) continue;
    note += fmt::format("\n{:>10}  {}", to_text(memory.sizes[static_cast<size_t>(id)]),
                        program.tensors[static_cast<size_t>(id)].name);
    if (++shown == 8) break;
  }
  return note;
}

}  // namespace

StackedChart explained_timeline(const step::Program& program, const step::MemoryPlan& memory) {
  StackedChart chart = memory_timeline(program, memory);
  // Weights are live always and known from the table: notes are about what comes and goes.
  std::vector<int> by_size;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (!program.tensors[i].persistent) by_size.push_back(static_cast<int>(i));
  }
  std::stable_sort(by_size.begin(), by_size.end(), [&](int a, int b) {
    return memory.sizes[static_cast<size_t>(a)] > memory.sizes[static_cast<size_t>(b)];
  });
  const std::vector<Bytes> live = live_bytes(program, memory);
  const size_t first = program.ops.size() - (chart.layers.empty() ? 0 : chart.layers[0].size());
  for (size_t op = first; op < program.ops.size(); ++op) {
    chart.hover.push_back(note_at(program, memory, static_cast<int>(op), by_size, live[op]));
  }
  return chart;
}

std::string explain_text(const planner::PlanView& plan, const std::vector<planner::WhatIf>& changes,
                         const std::string& rates) {
  std::string text = plan_text(plan);
  text += "\nby layer at the peak\n";
  for (const std::string& line : layer_lines(bytes_by_layer(plan.step.program, plan.memory))) {
    text += fmt::format("  {}\n", line);
  }
  text += fmt::format("\nwhat if (one change at a time; predicted times: {})\n", rates);
  for (const planner::WhatIf& change : changes) {
    text += fmt::format("  {}\n", change_line(change, plan.memory.arena, plan.capacity));
  }
  return text;
}

std::string explain_html(const planner::PlanView& plan, const std::vector<planner::WhatIf>& changes,
                         const std::string& rates) {
  StackedChart chart = explained_timeline(plan.step.program, plan.memory);
  chart.width = 1120;
  chart.height = 460;
  std::string rows;
  for (const planner::WhatIf& change : changes) {
    rows += fmt::format(
        "<tr><td><code>{}</code></td><td class=\"number\">{}</td><td class=\"number\">{:+.1f} %</td>"
        "<td>{}</td></tr>\n",
        xml_escape(change.setting), to_text(change.arena), 100 * (change.time_per_token - 1),
        change.arena <= plan.capacity ? "fits" : "does not fit");
  }
  const std::string what_if = fmt::format(
      "<p>One change at a time. Predicted times per token: {}.</p>\n"
      "<table><tr><th>change</th><th class=\"number\">arena</th>"
      "<th class=\"number\">time per token</th><th></th></tr>\n{}</table>\n",
      xml_escape(rates), rows);
  constexpr std::string_view title = "What makes the peak";
  constexpr std::string_view style =
      "main { max-width: 1140px; }\n"
      "pre { margin: 0; overflow-x: auto; font-size: 13px; }\n"
      "td, th { padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #d8dee4; }\n";
  return html_page(
      title, style,
      fmt::format("<h1>{}</h1>\n<p class=\"subtitle\">{} at {}. Hold the pointer over the picture "
                  "to see what is live at an operation.</p>\n{}{}{}",
                  title, to_text(plan.memory.lower_bound),
                  xml_escape(planner::peak_place(plan.step.program, plan.memory)),
                  card(to_svg(chart)), section("What if", card(what_if)),
                  section("The plan",
                          card(fmt::format("<pre>{}</pre>", xml_escape(plan_text(plan)))))));
}

}  // namespace plimsoll::report
