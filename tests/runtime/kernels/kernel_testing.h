// What the kernel tests share: matrices to run kernels on, comparison with the reference, and the
// promise made once for all kernels: the same bits with any number of threads, and right results on
// every Highway target that this machine can run.
#pragma once

#ifndef HWY_DISABLED_TARGETS  // as the kernels are built
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
#include <fmt/format.h>
#include <hwy/highway.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/runtime/cpu/reference/reference.h"
#include "plimsoll/runtime/cpu/threads.h"
#include "plimsoll/runtime/view.h"

namespace plimsoll::cpu::kernel_testing {

using reference::Reals;
using reference::Tokens;

inline double stored(double value, Format format) {  // as a tensor of that format holds it
  const auto f32 = static_cast<float>(value);
  return format == Format::bf16 ? static_cast<float>(bf16(f32)) : f32;
}

// A matrix whose first element is aligned to its own size only.
class Tensor {
 public:
  Tensor(Format format, int64_t rows, int64_t columns, const Reals& values = {})
      : format_(format),
        rows_(rows),
        columns_(columns),
        storage_((rows * columns + 1) * bytes_per_element(format)) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto f32 = static_cast<float>(values[i]);
      if (format == Format::f32) view().as<float>()[i] = f32;
      if (format == Format::bf16) view().as<bf16>()[i] = bf16(f32);
    }
  }
  explicit Tensor(const Tokens& tokens) : Tensor(Format::i32, std::ssize(tokens), 1) {
    std::memcpy(view().data, tokens.data(), tokens.size() * sizeof(int32_t));
  }

  View view() const {
    auto* data = const_cast<std::byte*>(storage_.data()) + bytes_per_element(format_);
    return {data, format_, rows_, columns_};
  }
  Reals values() const {
    Reals result;
    for (int64_t i = 0; i < rows_ * columns_; ++i) {
      result.push_back(format_ == Format::f32 ? view().as<float>()[i]
                                              : static_cast<float>(view().as<bf16>()[i]));
    }
    return result;
  }
  bool operator==(const Tensor&) const = default;  // bit for bit

 private:
  Format format_;
  int64_t rows_;
  int64_t columns_;
  std::vector<std::byte> storage_;
};

// Scratch of exactly the size asked for, filled with NaN.
class Scratch {
 public:
  explicit Scratch(size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(64)))) {
    std::memset(data_, 0xff, bytes);
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() { ::operator delete(data_, std::align_val_t(64)); }
  Workspace span() const { return {data_, bytes_}; }

 private:
  size_t bytes_;
  std::byte* data_;
};

// Random sizes and numbers of one test case.
class Draw {
 public:
  Draw() : random_(*rc::gen::arbitrary<uint64_t>()) {}
  static int64_t size(int64_t smallest, int64_t largest) {
    return *rc::gen::inRange(smallest, largest + 1);
  }
  static Format activation_format() { return *rc::gen::element(Format::f32, Format::bf16); }
  static Gate gate() { return *rc::gen::elementOf(step::gates); }
  static bool flag() { return *rc::gen::arbitrary<bool>(); }
  // Normally distributed, rounded to `format`.
  Reals reals(int64_t count, Format format = Format::f32, double deviation = 1) {
    Reals result(count);
    std::normal_distribution<double> normal(0, deviation);
    for (double& value : result) value = stored(normal(random_), format);
    return result;
  }
  Tokens tokens(int64_t count, int32_t smallest, int32_t largest) {
    Tokens result(count);
    std::uniform_int_distribution<int32_t> uniform(smallest, largest);
    for (int32_t& token : result) token = uniform(random_);
    return result;
  }

 private:
  std::mt19937_64 random_;
};

// Differences up to relative * |expected| + absolute pass. One rounding to bf16 is at most 2^-9.
struct Tolerance {
  double relative, absolute;
};
inline Tolerance tolerance(Format format) {
  return format == Format::bf16 ? Tolerance{0x1p-8, 1e-5} : Tolerance{1e-5, 1e-5};
}

inline void expect_close(std::string_view what, const Reals& actual, const Reals& expected,
                         Tolerance tolerance) {
  if (actual.size() != expected.size()) {
    RC_FAIL(fmt::format("{} has {} elements, not {}", what, actual.size(), expected.size()));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const double allowed = tolerance.relative * std::abs(expected[i]) + tolerance.absolute;
    if (!(std::abs(actual[i] - expected[i]) <= allowed)) {
      RC_FAIL(fmt::format("{}[{}] is {:.9g}, the reference says {:.9g} (target {})", what, i,
                          actual[i], expected[i],
                          hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets())));
    }
  }
}

inline void expect_close(std::string_view what, const Tensor& actual, const Reals& expected) {
  expect_close(what, actual.values(), expected, tolerance(actual.view().format));
}

inline Reals sum(const Reals& a, const Reals& b) {
  Reals result = a;
  for (size_t i = 0; i < b.size(); ++i) result[i] += b[i];
  return result;
}

// `kernel` makes its outputs anew in every call. They must be bit-identical with 1, 2 and 3
// threads, and pass `check` on every target.
template <class Kernel, class Check>
void on_every_target(const Kernel& kernel, const Check& check) {
  const int threads_before = thread_count();
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    set_thread_count(1);
    const std::vector<Tensor> outputs = kernel();
    for (const int threads : {2, 3}) {
      set_thread_count(threads);
      const std::vector<Tensor> again = kernel();
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!(again[i] == outputs[i])) {
          RC_FAIL(fmt::format("output {} differs between 1 and {} threads (target {})", i, threads,
                              hwy::TargetName(target)));
        }
      }
    }
    check(outputs);
  }
  hwy::SetSupportedTargetsForTest(0);
  set_thread_count(threads_before);
}

}  // namespace plimsoll::cpu::kernel_testing
