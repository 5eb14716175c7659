// Units in the type, and the one place where quantities become text for a person.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace plimsoll {

struct Bytes {
  int64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(int64_t n, Bytes b) { return {n * b.count}; }
};

// Floating-point operations; a multiply-add counts as two. A double holds 64B-parameter steps.
struct Flops {
  double count = 0;
  constexpr auto operator<=>(const Flops&) const = default;
  constexpr Flops& operator+=(Flops other) {
    count += other.count;
    return *this;
  }
  friend constexpr Flops operator+(Flops a, Flops b) { return {a.count + b.count}; }
};

struct Seconds {
  double count = 0;
  constexpr auto operator<=>(const Seconds&) const = default;
};

// `bytes` rounded up to a multiple of `alignment` (a power of two).
constexpr Bytes round_up(Bytes bytes, int64_t alignment) {
  return {(bytes.count + alignment - 1) & -alignment};
}

// "512 B", "1.5 KiB", "15.5 GiB".
std::string to_text(Bytes bytes);
// "2.1 GFLOP".
std::string to_text(Flops flops);
// "830 ms", "12.3 s", "4 min 10 s", "3 h 05 min".
std::string to_text(Seconds seconds);
// 51000 -> "51.0k", 1.236e9 -> "1.24B" (decimal, for counts of parameters and tokens).
std::string to_count_text(double count);

// "1536", "1.5 GiB", "800MiB", "2GB" (decimal GB, binary GiB). Raises Exit::usage naming `key`.
Bytes parse_bytes(const std::string& text, const std::string& key);

}  // namespace plimsoll
