// The number formats a tensor can be stored in.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll {

// e8m0 is only a scale. e2m1 stores two elements a byte, the even one in the low half, so its
// matrices have an even number of columns.
enum class Format : uint8_t { f32, bf16, i32, f16, e4m3, e5m2, e2m1, e8m0 };
constexpr int format_count = 8;

constexpr int64_t bits_per_element(Format format) {
  switch (format) {
    case Format::f32:
    case Format::i32:
      return 32;
    case Format::bf16:
    case Format::f16:
      return 16;
    case Format::e4m3:
    case Format::e5m2:
    case Format::e8m0:
      return 8;
    case Format::e2m1:
      return 4;
  }
  return 0;
}

// Bytes of `elements` elements in a row.
constexpr int64_t bytes_of(Format format, int64_t elements) {
  return (elements * bits_per_element(format) + 7) / 8;
}

// Bytes of one element of a format that has whole bytes.
constexpr int64_t bytes_per_element(Format format) { return bits_per_element(format) / 8; }

// Name as in safetensors' lower case: "f32", "bf16", "e4m3".
constexpr std::string_view name(Format format) {
  constexpr std::string_view names[] = {"f32",  "bf16", "i32",  "f16",
                                        "e4m3", "e5m2", "e2m1", "e8m0"};
  return names[static_cast<size_t>(format)];
}

}  // namespace plimsoll
