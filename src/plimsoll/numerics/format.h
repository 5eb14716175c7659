// The number formats a tensor can be stored in.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll {

enum class Format : uint8_t { f32, bf16, i32 };

// Bytes of one element.
constexpr int64_t bytes_per_element(Format format) {
  switch (format) {
    case Format::f32:
      return 4;
    case Format::bf16:
      return 2;
    case Format::i32:
      return 4;
  }
  return 0;
}

// Name as in safetensors' lower case: "f32", "bf16", "i32".
constexpr std::string_view name(Format format) {
  switch (format) {
    case Format::f32:
      return "f32";
    case Format::bf16:
      return "bf16";
    case Format::i32:
      return "i32";
  }
  return "?";
}

}  // namespace plimsoll
