#include "plimsoll/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace plimsoll::report {

namespace {

// Values over 1e300 are left out like infinite ones: their differences would overflow.
std::vector<double> finite_sorted(std::span<const double> values) {
  std::vector<double> sorted;
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted),
               [](double value) { return std::abs(value) <= 1e300; });
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Range never_empty(Range range) {
  if (range.high > range.low) return range;
  const double half = std::abs(range.low) < 1e-300 ? 0.5 : std::abs(range.low) * 0.1;
  return {range.low - half, range.high + half};
}

// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
double nice_step(double step) {
  const double magnitude = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * magnitude * (1 + 1e-9)) return factor * magnitude;
  }
  return 10 * magnitude;
}

// Decimals that tell multiples of `step` apart.
int decimals_of(double step) {
  return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
}

// "3e-05" -> "3e-5": exponents as people write them.
std::string scientific(double value) {
  const std::string text = fmt::format("{:.6e}", value);
  const size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return fmt::format("{}e{}", mantissa, std::stoi(text.substr(e + 1)));
}

// `largest`: of the axis, so that all its texts have the same form.
std::string number_text(double value, double step, double largest) {
  const double size = std::abs(value);
  if (size < step * 1e-6) return "0";
  const int decimals = decimals_of(step);
  if ((decimals > 3 && largest < 0.01) || size >= 1e12) return scientific(value);
  constexpr std::array<std::pair<double, const char*>, 3> suffixes = {
      {{1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [factor, suffix] : suffixes) {
    if (size >= factor && (size >= 1e4 || step >= 1e3)) {
      return fmt::format("{:.{}f}{}", value / factor, decimals_of(step / factor), suffix);
    }
  }
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

Range full_range(std::span<const double> values) {
  const std::vector<double> sorted = finite_sorted(values);
  if (sorted.empty()) return {0, 1};
  return never_empty({sorted.front(), sorted.back()});
}

Range robust_range(std::span<const double> values) {
  const std::vector<double> sorted = finite_sorted(values);
  if (sorted.empty()) return {0, 1};
  const size_t tail = sorted.size() / 50;
  // Under 50 values a percentile is the extreme itself; one lone value may still be cut off.
  const size_t skip = sorted.size() >= 8 ? std::max<size_t>(tail, 1) : 0;
  const double low = sorted[skip];
  const double high = sorted[sorted.size() - 1 - skip];
  const double reach = 3 * (high - low);
  if (reach == 0) return never_empty({sorted.front(), sorted.back()});
  return never_empty(
      {std::max(sorted.front(), low - reach), std::min(sorted.back(), high + reach)});
}

Range padded(Range range) {
  const double room = 0.05 * (range.high - range.low);
  const bool starts_at_zero = range.low >= 0 && range.low < 0.2 * range.high;
  return {starts_at_zero ? 0 : range.low - room, range.high + room};
}

std::vector<Tick> linear_ticks(Range range, int at_most, TickUnit unit, double min_step) {
  constexpr std::array<const char*, 6> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t power = 0;
  double scale = 1;
  if (unit == TickUnit::bytes) {
    while (range.high >= 1024 * scale && power + 1 < names.size()) {
      scale *= 1024;
      ++power;
    }
  }
  const double low = range.low / scale;
  const double high = range.high / scale;
  const double step = std::max({nice_step((high - low) / std::max(1, at_most)), min_step,
                                unit == TickUnit::bytes && power == 0 ? 1.0 : 0.0});
  const double largest = std::max(std::abs(low), std::abs(high));
  std::vector<Tick> ticks;
  const auto first = static_cast<int64_t>(std::ceil(low / step - 1e-6));
  const auto last = static_cast<int64_t>(std::floor(high / step + 1e-6));
  for (int64_t i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    const std::string text =
        unit == TickUnit::number ? number_text(value, step, largest)
        : i == 0                 ? "0"
                 : fmt::format("{:.{}f} {}", value, decimals_of(step), names[power]);
    ticks.push_back({value * scale, text});
  }
  return ticks;
}

std::vector<Tick> log_ticks(Range range) {
  const bool between = range.high / range.low < 1000;
  std::vector<Tick> ticks;
  for (int exponent = static_cast<int>(std::floor(std::log10(range.low)));
       std::pow(10.0, exponent) <= range.high * (1 + 1e-9); ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, exponent);
      if (factor != 1 && !between) continue;
      if (value < range.low * (1 - 1e-9) || value > range.high * (1 + 1e-9)) continue;
      ticks.push_back({value, number_text(value, std::pow(10.0, exponent), range.high)});
    }
  }
  return ticks.size() >= 2 ? ticks : linear_ticks(range, 5);
}

}  // namespace plimsoll::report
