#include "plimsoll/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "plimsoll/base/error.h"

namespace plimsoll {

namespace {

std::string with_prefix(double value, double base, std::span<const char* const> units) {
  size_t unit = 0;
  while (std::abs(value) >= base * 0.9995 && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace

std::string to_text(Bytes bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  return with_prefix(static_cast<double>(bytes.count), 1024, units);
}

std::string to_text(Flops flops) {
  constexpr std::array units = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  return with_prefix(flops.count, 1000, units);
}

std::string to_text(Seconds seconds) {
  const double s = seconds.count;
  // Each limit is where rounding reaches the next unit: never "1000 ms" or "60.0 s".
  if (s < 0.9995e-3) return fmt::format("{:.0f} us", s * 1e6);
  if (s < 0.9995) return fmt::format("{:.0f} ms", s * 1e3);
  if (s < 59.95) return fmt::format("{:.1f} s", s);
  const int64_t whole = std::llround(s);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string to_count_text(double count) {
  constexpr std::array<const char*, 5> suffixes = {"", "k", "M", "B", "T"};
  size_t suffix = 0;
  while (std::abs(count) >= 999.5 && suffix + 1 < suffixes.size()) {
    count /= 1000;
    ++suffix;
  }
  if (suffix == 0) return fmt::format("{:.0f}", count);
  return fmt::format("{:.{}f}{}", count, count < 9.995 ? 2 : 1, suffixes[suffix]);
}

Bytes parse_bytes(const std::string& text, const std::string& key) {
  struct Unit {
    const char* name;
    double factor;
  };
  constexpr std::array<Unit, 10> units = {{{"", 1},
                                           {"B", 1},
                                           {"KiB", 0x1p10},
                                           {"MiB", 0x1p20},
                                           {"GiB", 0x1p30},
                                           {"TiB", 0x1p40},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, text.data() + text.size() - end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (error == std::errc() && value >= 0) {
    for (const Unit& known : units) {
      // 2^63 bytes, and infinity, do not fit an int64_t.
      const double bytes = value * known.factor;
      if (unit == known.name && bytes < 0x1p63) return {std::llround(bytes)};
    }
  }
  throw Error(Exit::usage, fmt::format("{} = \"{}\" is not a size.", key, text),
              "Write a number with a unit, for example \"800 MiB\", \"16 GiB\" or \"80 GB\".");
}

}  // namespace plimsoll
