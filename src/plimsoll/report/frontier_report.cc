#include "plimsoll/report/frontier_report.h"

#include "plimsoll/report/svg.h"

namespace plimsoll::report {

namespace {

double percent_slower(const planner::FrontPoint& point, const planner::FrontPoint& first) {
  return 100 * (point.step.count / first.step.count - 1);
}

}  // namespace

std::string frontier_text(const std::vector<planner::FrontPoint>& front, const std::string& rates) {
  std::string text = fmt::format("memory against recomputation (predicted times: {})\n", rates);
  text += fmt::format("  {:>10} {:>12} {:>14} {:>12} {:>8}  {}\n", "arena", "saved", "recomputed",
                      "step", "slower", "dropped groups");
  for (const planner::FrontPoint& point : front) {
    text += fmt::format("  {:>10} {:>12} {:>14} {:>12} {:>6.1f} %  {}\n", to_text(point.arena),
                        to_text(front.front().arena - point.arena), to_text(point.recompute),
                        to_text(point.step), percent_slower(point, front.front()),
                        point.dropped_groups);
  }
  return text;
}

nlohmann::json frontier_json(const std::vector<planner::FrontPoint>& front,
                             const std::string& rates) {
  nlohmann::json points = nlohmann::json::array();
  for (const planner::FrontPoint& point : front) {
    points.push_back({{"arena_bytes", point.arena.count},
                      {"recompute_flops", point.recompute.count},
                      {"predicted_step_seconds", point.step.count},
                      {"dropped_groups", point.dropped_groups}});
  }
  return {{"rates", rates}, {"front", points}};
}

std::string frontier_svg(const std::vector<planner::FrontPoint>& front) {
  Series series = {.points = true};
  for (const planner::FrontPoint& point : front) {
    series.x.push_back(percent_slower(point, front.front()));
    series.y.push_back(static_cast<double>(point.arena.count));
  }
  return to_svg(LineChart{.title = "Memory against recomputation",
                          .x_label = "predicted step time, % above saving everything",
                          .y_label = "arena",
                          .series = {std::move(series)},
                          .y_unit = TickUnit::bytes});
}

}  // namespace plimsoll::report
