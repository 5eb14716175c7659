// A tensor's bytes in memory, as kernels see them: a row-major matrix in some number format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/numerics/format.h"

namespace plimsoll {

struct View {
  std::byte* data = nullptr;
  Format format = Format::f32;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t elements() const { return rows * columns; }

  // The elements as `T`, which must be the type of `format`.
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<size_t>(elements())};
  }
  std::span<std::byte> bytes() const {
    return {data, static_cast<size_t>(bytes_of(format, elements()))};
  }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace plimsoll
