#include "plimsoll/report/svg.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace plimsoll::report {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks) out.push_back(tick.text);
  return out;
}

// The first tag that is not closed in order; empty when the document is well formed.
std::string unbalanced_tag(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return xml.substr(at, 20);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.back() == '/') continue;
    const std::string name = tag.substr(0, tag.find(' '));
    if (name[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != name.substr(1)) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

LineChart chart_of(std::vector<double> x, std::vector<double> y) {
  return {.title = "Loss",
          .x_label = "step",
          .y_label = "nats",
          .series = {{.label = "train", .x = std::move(x), .y = std::move(y)}}};
}

TEST(Ticks, AreRoundAndShort) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(linear_ticks({0, 10.9}, 6)), (Texts{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(texts(linear_ticks({1.75, 2.3}, 6)), (Texts{"1.8", "1.9", "2.0", "2.1", "2.2", "2.3"}));
  EXPECT_EQ(texts(linear_ticks({0, 9.4e-4}, 5)), (Texts{"0", "2e-4", "4e-4", "6e-4", "8e-4"}));
  EXPECT_EQ(texts(linear_ticks({0, 20000}, 4)), (Texts{"0", "5k", "10k", "15k", "20k"}));
  EXPECT_EQ(texts(linear_ticks({1, 3}, 9, TickUnit::number, 1)), (Texts{"1", "2", "3"}));
  EXPECT_EQ(texts(linear_ticks({-1.2, 1.2}, 3)), (Texts{"-1", "0", "1"}));
}

TEST(Ticks, OfBytesAreRoundInTheBinaryUnit) {
  using Texts = std::vector<std::string>;
  constexpr double mib = 1 << 20;
  EXPECT_EQ(texts(linear_ticks({0, 420 * mib}, 5, TickUnit::bytes)),
            (Texts{"0", "100 MiB", "200 MiB", "300 MiB", "400 MiB"}));
  EXPECT_EQ(texts(linear_ticks({0, 1600 * mib}, 4, TickUnit::bytes)),
            (Texts{"0", "0.5 GiB", "1.0 GiB", "1.5 GiB"}));
  EXPECT_EQ(linear_ticks({0, 1600 * mib}, 4, TickUnit::bytes)[2].value, 1024 * mib);
}

TEST(Ticks, OnALogAxisArePowersOfTen) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(log_ticks({1, 20000})), (Texts{"1", "10", "100", "1k", "10k"}));
  EXPECT_EQ(texts(log_ticks({1, 60})), (Texts{"1", "2", "5", "10", "20", "50"}));
}

RC_GTEST_PROP(Ticks, LieWithinTheRangeAndAreFew, ()) {
  const double low = *rc::gen::inRange(-1000000, 1000000) / 997.0;
  const double extent = *rc::gen::inRange(1, 1000000) / 991.0;
  const int at_most = *rc::gen::inRange(1, 12);
  const std::vector<Tick> ticks = linear_ticks({low, low + extent}, at_most);
  RC_ASSERT(static_cast<int>(ticks.size()) <= at_most + 1);
  for (const Tick& tick : ticks) {
    RC_ASSERT(tick.value >= low - 1e-5 * extent);
    RC_ASSERT(tick.value <= low + extent * (1 + 1e-5));
  }
}

TEST(Ranges, DoNotFollowOneHugeValue) {
  std::vector<double> losses = {1e6};
  for (int i = 0; i < 100; ++i) losses.push_back(3 + 0.01 * i);
  const Range range = robust_range(losses);
  EXPECT_EQ(range.low, 3);
  EXPECT_LT(range.high, 8);
}

TEST(Ranges, KeepAnOrdinaryLossCurveWhole) {
  std::vector<double> losses;
  for (int step = 1; step <= 400; ++step)
    losses.push_back(1.8 + 9 * std::pow(1 + step / 12.0, -0.9));
  EXPECT_EQ(robust_range(losses), full_range(losses));
}

TEST(Ranges, AreNeverEmpty) {
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {nan},
                                            {0},
                                            {2.5},
                                            {-3, -3},
                                            {infinity, 7},
                                            {5e-324},
                                            {-1.7e308, 1.7e308}}) {
    for (const Range range : {full_range(values), robust_range(values)}) {
      EXPECT_GT(range.high - range.low, 0);
      EXPECT_TRUE(std::isfinite(range.high - range.low));
    }
  }
}

TEST(LineChart, StatesItsSizeAndCarriesItsBackground) {
  const std::string svg = to_svg(chart_of({1, 2, 3}, {3, 2, 1}));
  EXPECT_TRUE(contains(svg, "width=\"860\" height=\"360\" viewBox=\"0 0 860 360\"")) << svg;
  EXPECT_TRUE(contains(svg, "fill=\"#ffffff\"")) << svg;
}

TEST(LineChart, EscapesEveryTextItIsGiven) {
  LineChart chart = chart_of({1, 2}, {1, 2});
  const std::string hostile = "<script>\"&'\x01\xff";
  chart.title = chart.x_label = chart.y_label = chart.series[0].label = hostile;
  for (const bool legend : {false, true}) {
    chart.legend = legend;
    const std::string svg = to_svg(chart);
    EXPECT_FALSE(contains(svg, "<script")) << svg;
    EXPECT_FALSE(contains(svg, "\xff")) << svg;
    EXPECT_EQ(count(svg, "&lt;script&gt;&quot;&amp;&#39; ?"), 5u) << svg;
    EXPECT_EQ(unbalanced_tag(svg), "");
  }
}

TEST(LineChart, SaysWhenThereIsNothingToDraw) {
  EXPECT_TRUE(contains(to_svg(LineChart{}), "no values yet"));
  EXPECT_TRUE(contains(to_svg(chart_of({1, 2}, {nan, infinity})), "no finite values"));
}

TEST(LineChart, ShowsASinglePointAsADot) {
  const std::string svg = to_svg(chart_of({17}, {2.5}));
  EXPECT_EQ(count(svg, "<circle"), 1u) << svg;
  EXPECT_EQ(count(svg, "<path"), 0u) << svg;
}

TEST(LineChart, LeavesAGapWhereAValueIsNotFinite) {
  const std::string svg = to_svg(chart_of({1, 2, 3, 4, 5}, {3, 2.5, nan, 2, 1.5}));
  const size_t begin = svg.find("<path d=\"");
  const std::string path = svg.substr(begin, svg.find('>', begin) - begin);
  EXPECT_EQ(count(path, "M"), 2u) << path;
  EXPECT_TRUE(contains(svg, "1 not finite")) << svg;
}

TEST(LineChart, SaysWhatLiesOffTheScale) {
  std::vector<double> x, y;
  for (int i = 0; i < 100; ++i) {
    x.push_back(i);
    y.push_back(i == 0 ? 40000 : 3 + 0.001 * i);
  }
  const std::string svg = to_svg(chart_of(x, y));
  EXPECT_TRUE(contains(svg, "1 off the scale, farthest 4e+04")) << svg;

  LineChart with_mean = chart_of(x, y);
  with_mean.series.insert(with_mean.series.begin(), {.x = x, .y = y, .faint = true});
  EXPECT_TRUE(contains(to_svg(with_mean), "1 off the scale")) << "the mean was counted too";
}

TEST(LineChart, StaysSmallWithManyPoints) {
  std::vector<double> x, y;
  for (int i = 0; i < 200000; ++i) {
    x.push_back(i);
    y.push_back(i % 17);
  }
  EXPECT_LT(to_svg(chart_of(x, y)).size(), 60000u);
}

TEST(LineChart, KeepsEndLabelsApart) {
  LineChart chart;
  for (int i = 0; i < 4; ++i) {
    chart.series.push_back({.label = "end" + std::to_string(i), .x = {0, 1}, .y = {9, 1}});
  }
  const std::string svg = to_svg(chart);
  std::vector<double> heights;
  for (int i = 0; i < 4; ++i) {
    const size_t label = svg.find(">end" + std::to_string(i) + "<");
    ASSERT_NE(label, std::string::npos);
    heights.push_back(std::stod(svg.substr(svg.rfind(" y=\"", label) + 4)));
  }
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 15.9);
}

RC_GTEST_PROP(LineChart, IsWellFormedForAnyData, ()) {
  const auto any_value = rc::gen::oneOf(rc::gen::arbitrary<double>(),
                                        rc::gen::element(0.0, -1.0, 1e300, -1e300, nan, infinity));
  LineChart chart;
  chart.log_x = *rc::gen::arbitrary<bool>();
  chart.legend = *rc::gen::arbitrary<bool>();
  chart.y_unit = *rc::gen::element(TickUnit::number, TickUnit::bytes);
  const int series = *rc::gen::inRange(0, 4);
  for (int i = 0; i < series; ++i) {
    chart.series.push_back({.label = *rc::gen::arbitrary<std::string>(),
                            .x = *rc::gen::container<std::vector<double>>(any_value),
                            .y = *rc::gen::container<std::vector<double>>(any_value),
                            .points = *rc::gen::arbitrary<bool>(),
                            .faint = *rc::gen::arbitrary<bool>()});
  }
  const std::string svg = to_svg(chart);
  RC_ASSERT(unbalanced_tag(svg) == "");
  for (const char* bad : {"=\"nan", "=\"inf", "=\"-inf", "=\"-nan", ",nan", ",inf"}) {
    RC_ASSERT(!contains(svg, bad));
  }
}

StackedChart stack() {
  return {.title = "Memory",
          .labels = {"param", "saved"},
          .layers = {{10, 10, 10, 10}, {0, 5, 20, 1}},
          .bands = {{0, 2, "forward"}, {2, 4, "backward"}},
          .marker = Marker{2, "peak 30 B"}};
}

TEST(StackedChart, ShowsLayersBandsAndMarker) {
  const std::string svg = to_svg(stack());
  EXPECT_EQ(count(svg, "<path"), 2u) << svg;
  for (const char* text : {">param<", ">saved<", ">forward<", ">backward<", ">peak 30 B<"}) {
    EXPECT_TRUE(contains(svg, text)) << "no " << text << " in\n" << svg;
  }
  EXPECT_TRUE(contains(svg, area_color(0)) && contains(svg, area_color(1)));
}

TEST(StackedChart, KeepsThePeakWithMoreOpsThanPixels) {
  StackedChart chart = stack();
  chart.marker.reset();
  chart.bands.clear();
  chart.layers = {std::vector<double>(50000, 1.0)};
  chart.layers[0][31415] = 100;
  const std::string svg = to_svg(chart);
  EXPECT_LT(svg.size(), 5000u);
  chart.layers[0][31415] = 1;
  EXPECT_GT(svg.size(), to_svg(chart).size()) << "the one high op left no step in the outline";
}

TEST(StackedChart, SurvivesMissingAndInvalidValues) {
  StackedChart chart = stack();
  chart.layers = {{1, nan, -3}, {}, {infinity}};
  chart.labels = {"only one"};
  chart.marker = Marker{99, "beyond the end"};
  chart.bands = {{-5, 100, "everything"}, {3, 3, "nothing"}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(unbalanced_tag(svg), "");
  EXPECT_FALSE(contains(svg, "nan") || contains(svg, "inf")) << svg;
  EXPECT_FALSE(contains(svg, "nothing")) << svg;
  EXPECT_TRUE(contains(to_svg(StackedChart{}), "no values yet"));
}

}  // namespace
}  // namespace plimsoll::report
