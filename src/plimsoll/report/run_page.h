// report.html of a run: one file that shows the facts, the curves and the memory of the run, with
// everything it needs inside (no scripts, no network), so that it can be mailed or archived.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {

struct Fact {  // one row of the table of facts
  std::string label;
  std::string value;
};

struct StepSeries {  // one entry a step; an empty vector leaves its chart out
  std::vector<double> step, loss, lr, grad_norm, tokens_per_second;
};

struct ValidationPoint {
  double step = 0;
  double loss = 0;  // nats a token
};

struct RoleBytes {
  std::string role;
  Bytes bytes;
};

struct ReportInput {
  std::string title;             // name of the run
  std::string subtitle;          // one line under it; may be empty
  std::vector<Fact> highlights;  // three to five, shown large: final loss, tokens/s, ...
  std::vector<Fact> facts;       // model, parameters, precision, batch, planned bytes, ...
  StepSeries steps;
  std::vector<ValidationPoint> validation;
  std::vector<RoleBytes> at_peak;  // in the order of the timeline's layers, for its colours
  StackedChart memory_timeline;    // without layers: left out
  std::string config;              // run.toml
};

std::string report_html(const ReportInput& input);

// The loss over the steps, trained and held out: loss.svg, and the first picture of the report.
LineChart loss_chart(const ReportInput& input);

// Mean of the values around each one, over at most `window` of them. Near the beginning, where
// losses fall fast, fewer and as many on either side, so that it is not pulled down; near the end,
// where noise would show, at least a quarter of the window before. Values that are not finite are
// left out; where there is no other, the result is not finite.
std::vector<double> smoothed(const std::vector<double>& values, size_t window);

}  // namespace plimsoll::report
