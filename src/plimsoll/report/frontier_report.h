// The front of memory against recomputation, as a table, JSON and a picture.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/planner/recompute.h"

namespace plimsoll::report {

std::string frontier_text(const std::vector<planner::FrontPoint>& front, const std::string& rates);
nlohmann::json frontier_json(const std::vector<planner::FrontPoint>& front,
                             const std::string& rates);
std::string frontier_svg(const std::vector<planner::FrontPoint>& front);

}  // namespace plimsoll::report
