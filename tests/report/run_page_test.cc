#include "plimsoll/report/run_page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace plimsoll::report {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ReportInput small_run() {
  ReportInput input;
  input.title = "llama-3m";
  input.subtitle = "finished 3 of 3 steps";
  input.highlights = {{"tokens per second", "51.2k"}};
  input.facts = {{"parameters", "3.21M"}, {"precision", "bf16"}};
  input.steps = {.step = {1, 2, 3},
                 .loss = {10.8, 9.1, 8.2},
                 .lr = {1e-4, 2e-4, 3e-4},
                 .grad_norm = {5, 3, 2},
                 .tokens_per_second = {9000, 51000, 51200}};
  input.validation = {{0, 10.9}, {3, 8.3}};
  input.at_peak = {{"param", {3 << 20}}, {"saved", {1 << 20}}};
  input.memory_timeline = {
      .title = "Live memory", .labels = {"param", "saved"}, .layers = {{3e6, 3e6}, {0, 1e6}}};
  input.config = "[train]\nsteps = 3\n";
  return input;
}

TEST(Report, ShowsEveryPartOfTheRun) {
  const std::string html = report_html(small_run());
  for (const char* text : {"<h1>llama-3m</h1>", "finished 3 of 3 steps", "51.2k", "3.21M", "bf16",
                           ">validation<", "Learning rate", "Gradient norm", "Tokens per second",
                           "Live memory", "3.0 MiB", "75.0%", "4.0 MiB", "steps = 3"}) {
    EXPECT_TRUE(contains(html, text)) << "missing: " << text;
  }
}

TEST(Report, NeedsNothingFromOutside) {
  std::string html = report_html(small_run());
  const std::string name_space = "http://www.w3.org/2000/svg";
  for (size_t at = html.find(name_space); at != std::string::npos; at = html.find(name_space)) {
    html.erase(at, name_space.size());
  }
  for (const char* outside : {"http", "src=", "href=", "url(", "@import", "<script"}) {
    EXPECT_FALSE(contains(html, outside)) << outside;
  }
}

TEST(Report, EscapesWhatTheRunIsCalledAndConfiguredWith) {
  ReportInput input = small_run();
  const std::string hostile = "</pre><script>&\"";
  input.title = input.subtitle = input.config = hostile;
  input.facts = input.highlights = {{hostile, hostile}};
  input.at_peak[0].role = input.memory_timeline.labels[0] = hostile;
  const std::string html = report_html(input);
  EXPECT_FALSE(contains(html, "<script"));
  EXPECT_TRUE(contains(html, "&lt;/pre&gt;&lt;script&gt;&amp;&quot;"));
}

TEST(Report, LeavesOutWhatARunDoesNotHaveYet) {
  ReportInput input;
  input.title = "just started";
  const std::string html = report_html(input);
  EXPECT_TRUE(contains(html, "no values yet"));
  for (const char* part : {"<h2>Memory", "<h2>Configuration", "<h2>The run", "Learning rate"}) {
    EXPECT_FALSE(contains(html, part)) << part;
  }
}

TEST(Smoothed, IsTheMeanOfTheWindowAndKeepsTheEnds) {
  EXPECT_EQ(smoothed({9, 3, 6, 0, 12}, 3), (std::vector<double>{9, 6, 3, 6, 12}));
  EXPECT_EQ(smoothed({}, 3), std::vector<double>{});
  EXPECT_EQ(smoothed({5}, 100), std::vector<double>{5});
}

TEST(Smoothed, KeepsAStraightLineAndLagsLittleAtTheEnd) {
  std::vector<double> line;
  for (int i = 0; i < 50; ++i) line.push_back(0.25 * i);
  const std::vector<double> out = smoothed(line, 9);
  for (size_t i = 0; i + 2 < line.size(); ++i) EXPECT_EQ(out[i], line[i]) << "at " << i;
  EXPECT_NEAR(out.back(), line.back(), 0.25);
}

TEST(Smoothed, LeavesOutValuesThatAreNotFinite) {
  const std::vector<double> out = smoothed({nan, 2, nan, 4, nan}, 3);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(out[3], 4);
  EXPECT_TRUE(std::isnan(out[4]));
}

TEST(Smoothed, DoesNotCarryAHugeValuePastItsWindow) {
  const std::vector<double> out = smoothed({1e30, 1, 1, 1, 1, 1}, 3);
  EXPECT_EQ(out[3], 1);
  EXPECT_EQ(out[5], 1);
}

}  // namespace
}  // namespace plimsoll::report
