// The result of `plimsoll compare` for people and tools: lines of text, JSON, a page and a picture.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/compare/comparison.h"

namespace plimsoll::compare {

// `setup` says in one line what was trained.
std::string comparison_text(const Comparison& comparison, std::string_view setup);

// The same numbers; what is not known is null. Verdicts have underscores ("small_positive_gap").
nlohmann::ordered_json comparison_json(const Comparison& comparison);

// One file with everything it needs inside, like report.html of a run. `runs` are those that were
// compared.
std::string comparison_html(const Comparison& comparison, std::span<const RunCurve> runs,
                            std::string_view setup);

// The gap to bf16 over the steps after the warm-up, mean over seeds, with the control's curves,
// one a seed, behind.
std::string comparison_svg(const Comparison& comparison, std::span<const RunCurve> runs);

}  // namespace plimsoll::compare
