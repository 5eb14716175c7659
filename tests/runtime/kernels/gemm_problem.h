// Products of random matrices, checked against sums in double.
#pragma once

#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

namespace plimsoll::cpu {

using step::Product;

// A matrix that owns its elements, in f32 or bf16.
struct Matrix {
  Matrix(Format format, int64_t rows, int64_t columns)
      : format(format),
        rows(rows),
        columns(columns),
        bytes(static_cast<size_t>(rows * columns * bytes_per_element(format))) {}

  View view() const { return {const_cast<std::byte*>(bytes.data()), format, rows, columns}; }
  float at(int64_t i) const {
    return format == Format::f32 ? view().as<float>()[i] : static_cast<float>(view().as<bf16>()[i]);
  }
  void fill(std::minstd_rand& random) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < rows * columns; ++i) {
      if (format == Format::f32) {
        view().as<float>()[i] = uniform(random);
      } else {
        view().as<bf16>()[i] = bf16(uniform(random));
      }
    }
  }

  Format format;
  int64_t rows, columns;
  std::vector<std::byte> bytes;
};

struct Problem {
  explicit Problem(const GemmShape& shape)
      : shape(shape),
        a(shape.product == Product::weight_gradient ? Matrix(shape.a, shape.k, shape.m)
                                                    : Matrix(shape.a, shape.m, shape.k)),
        b(shape.product == Product::forward ? Matrix(shape.b, shape.n, shape.k)
                                            : Matrix(shape.b, shape.k, shape.n)),
        bias(Format::f32, 1, shape.n),
        c(shape.c, shape.m, shape.n) {
    std::minstd_rand random(static_cast<unsigned>(shape.m * 31 + shape.n * 7 + shape.k + 1));
    for (Matrix* matrix : {&a, &b, &bias, &c}) matrix->fill(random);
  }

  float a_at(int64_t m, int64_t k) const {
    return a.at(shape.product == Product::weight_gradient ? k * shape.m + m : m * shape.k + k);
  }
  float b_at(int64_t k, int64_t n) const {
    return b.at(shape.product == Product::forward ? n * shape.k + k : k * shape.n + n);
  }

  GemmShape shape;
  Matrix a, b, bias, c;
};

constexpr size_t kCanaryBytes = 256;
constexpr std::byte kCanary{0xa5};

// c of the problem, and whether the bytes after the workspace were left alone.
struct Result {
  Matrix c;
  bool workspace_overrun;
};

inline Result run(const Problem& problem, int threads, Bf16Kernel kernel = Bf16Kernel::portable) {
  const bool portable = kernel == Bf16Kernel::portable;
  const size_t needed = portable ? gemm_workspace(problem.shape, threads)
                                 : gemm_bf16_workspace(kernel, problem.shape, threads);
  std::vector<std::byte> storage(needed + kCanaryBytes + 64, kCanary);
  void* aligned = storage.data();
  size_t space = storage.size();
  std::align(64, needed + kCanaryBytes, aligned, space);
  auto* workspace = static_cast<std::byte*>(aligned);
  Result result{problem.c, false};
  const View bias = problem.shape.has_bias ? problem.bias.view() : View();
  if (portable) {
    gemm(problem.shape, problem.a.view(), problem.b.view(), bias, result.c.view(),
         {workspace, needed}, threads);
  } else {
    gemm_bf16(kernel, problem.shape, problem.a.view(), problem.b.view(), bias, result.c.view(),
              {workspace, needed}, threads);
  }
  for (size_t i = 0; i < kCanaryBytes; ++i) {
    result.workspace_overrun |= workspace[needed + i] != kCanary;
  }
  return result;
}

inline std::string describe(const GemmShape& s) {
  const char* products[] = {"forward", "input_gradient", "weight_gradient"};
  return std::string(products[static_cast<int>(s.product)]) + " m=" + std::to_string(s.m) +
         " n=" + std::to_string(s.n) + " k=" + std::to_string(s.k) +
         " in=" + std::string(name(s.a)) + " out=" + std::string(name(s.c)) +
         (s.has_bias ? " bias" : "") + (s.accumulate ? " accumulate" : "");
}

// The first element of c further from the sum in double than rounding explains, or "".
inline std::string first_error(const Problem& problem, const Matrix& c) {
  const GemmShape& s = problem.shape;
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t n = 0; n < s.n; ++n) {
      const double bias = s.has_bias ? problem.bias.at(n) : 0.0;
      const double before = s.accumulate ? problem.c.at(m * s.n + n) : 0.0;
      double sum = bias + before;
      double magnitude = std::abs(bias) + std::abs(before);
      for (int64_t k = 0; k < s.k; ++k) {
        const double product = static_cast<double>(problem.a_at(m, k)) * problem.b_at(k, n);
        sum += product;
        magnitude += std::abs(product);
      }
      // f32 sums: half a unit in the last place for each addition, but errors cancel; bf16: half
      // a unit of its 8 bits once.
      double tolerance = magnitude * 0x1p-24 * (4 + std::sqrt(static_cast<double>(s.k)));
      if (s.c == Format::bf16) tolerance += std::abs(sum) * 0x1p-8;
      const double got = c.at(m * s.n + n);
      if (!(std::abs(got - sum) <= tolerance)) {
        return describe(s) + ": c[" + std::to_string(m) + "," + std::to_string(n) +
               "] = " + std::to_string(got) + ", expected " + std::to_string(sum);
      }
    }
  }
  return "";
}

// The first element whose bits differ, or "".
inline std::string first_difference(const GemmShape& s, const Matrix& c, const Matrix& expected) {
  const auto size = static_cast<size_t>(bytes_per_element(s.c));
  for (int64_t i = 0; i < s.m * s.n; ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(c.bytes.data() + at, expected.bytes.data() + at, size) != 0) {
      return describe(s) + ": c[" + std::to_string(i / s.n) + "," + std::to_string(i % s.n) +
             "] = " + std::to_string(c.at(i)) + ", expected " + std::to_string(expected.at(i));
    }
  }
  return "";
}

inline rc::Gen<GemmShape> any_shape(int64_t most) {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 3), rc::gen::inRange<int64_t>(1, most),
                     rc::gen::inRange<int64_t>(1, most), rc::gen::inRange<int64_t>(1, 3 * most),
                     rc::gen::arbitrary<bool>(), rc::gen::arbitrary<bool>(),
                     rc::gen::arbitrary<bool>(), rc::gen::arbitrary<bool>()),
      [](const auto& t) {
        const auto [product, m, n, k, in_bf16, out_bf16, has_bias, accumulate] = t;
        const Format in = in_bf16 ? Format::bf16 : Format::f32;
        const Format out = out_bf16 ? Format::bf16 : Format::f32;
        return GemmShape{static_cast<Product>(product), m, n, k, in, in, out, has_bias, accumulate};
      });
}

constexpr Product kProducts[] = {Product::forward, Product::input_gradient,
                                 Product::weight_gradient};

}  // namespace plimsoll::cpu
