#include "plimsoll/runtime/cpu/kernels/gemm.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/numerics/bf16.h"

namespace plimsoll::cpu {
namespace {

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

Result run(const Problem& problem, int threads) {
  const size_t needed = gemm_workspace(problem.shape, threads);
  std::vector<std::byte> storage(needed + kCanaryBytes + 64, kCanary);
  void* aligned = storage.data();
  size_t space = storage.size();
  std::align(64, needed + kCanaryBytes, aligned, space);
  auto* workspace = static_cast<std::byte*>(aligned);
  Result result{problem.c, false};
  gemm(problem.shape, problem.a.view(), problem.b.view(),
       problem.shape.has_bias ? problem.bias.view() : View(), result.c.view(), {workspace, needed},
       threads);
  for (size_t i = 0; i < kCanaryBytes; ++i) {
    result.workspace_overrun |= workspace[needed + i] != kCanary;
  }
  return result;
}

std::string describe(const GemmShape& s) {
  const char* products[] = {"forward", "input_gradient", "weight_gradient"};
  return std::string(products[static_cast<int>(s.product)]) + " m=" + std::to_string(s.m) +
         " n=" + std::to_string(s.n) + " k=" + std::to_string(s.k) +
         " in=" + std::string(name(s.a)) + " out=" + std::string(name(s.c)) +
         (s.has_bias ? " bias" : "") + (s.accumulate ? " accumulate" : "");
}

// The first element of c further from the sum in double than rounding explains, or "".
std::string first_error(const Problem& problem, const Matrix& c) {
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
std::string first_difference(const GemmShape& s, const Matrix& c, const Matrix& expected) {
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

rc::Gen<GemmShape> any_shape(int64_t most) {
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

// Runs `check` with each Highway target that this CPU has in turn.
template <class Check>
void for_each_target(const Check& check) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

RC_GTEST_PROP(Gemm, MatchesSumsInDouble, ()) {
  const GemmShape shape = *any_shape(120);
  const int threads = *rc::gen::inRange(1, 4);
  const Problem problem(shape);
  const Result result = run(problem, threads);
  const std::string error = first_error(problem, result.c);
  if (!error.empty()) RC_FAIL(error);
}

// Several blocks of rows, columns and k.
TEST(Gemm, MatchesSumsInDoubleWhereBlocksEnd) {
  for (const Product product : kProducts) {
    for (const Format format : {Format::f32, Format::bf16}) {
      for (const auto& [m, n, k] : {std::tuple{550, 37, 520}, {23, 1100, 257}, {17, 33, 2000}}) {
        const Problem problem({product, m, n, k, format, format, format, true, true});
        EXPECT_EQ(first_error(problem, run(problem, 1).c), "");
      }
    }
  }
}

TEST(Gemm, MatchesSumsInDoubleOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const Product product : kProducts) {
      for (const Format format : {Format::f32, Format::bf16}) {
        for (const auto& [m, n, k] :
             {std::tuple{1, 1, 1}, {1, 77, 300}, {5, 6, 17}, {31, 67, 129}, {24, 64, 600}}) {
          const Problem problem({product, m, n, k, format, format, format, true, true});
          EXPECT_EQ(first_error(problem, run(problem, 2).c), "") << target;
        }
      }
    }
  });
}

RC_GTEST_PROP(Gemm, IsBitIdenticalForAnyNumberOfThreads, ()) {
  const GemmShape shape = *any_shape(300);
  const int threads = *rc::gen::inRange(2, 9);
  const Problem problem(shape);
  const Result one = run(problem, 1);
  const Result several = run(problem, threads);
  const std::string difference = first_difference(shape, several.c, one.c);
  if (!difference.empty()) RC_FAIL(difference + " with " + std::to_string(threads) + " threads");
}

RC_GTEST_PROP(Gemm, StaysInItsWorkspace, ()) {
  const GemmShape shape = *any_shape(300);
  const int threads = *rc::gen::inRange(1, 9);
  if (run(Problem(shape), threads).workspace_overrun) RC_FAIL(describe(shape));
}

TEST(Gemm, NeedsFewMegabytesForAnyShape) {
  for (const Product product : kProducts) {
    for (const int64_t size : {1, 17, 1024, 50257, 1 << 20}) {
      GemmShape shape{product, size, size, size, Format::bf16, Format::bf16, Format::bf16};
      EXPECT_LT(gemm_workspace(shape, 4), size_t{4} * 2 * 1024 * 1024) << describe(shape);
    }
  }
}

// One row times many columns: generation of one token.
TEST(Gemm, MultipliesOneRowByAVocabulary) {
  for (const Format format : {Format::f32, Format::bf16}) {
    const Problem problem({Product::forward, 1, 50257, 64, format, format, Format::f32});
    EXPECT_EQ(first_error(problem, run(problem, 2).c), "");
  }
}

// 1024, then 4095 times 2^-9: were the sum rounded to bf16 now and then, 1024 would remain.
TEST(Gemm, RoundsABf16ResultOnce) {
  constexpr int64_t kDepth = 4096;
  for (const Product product : kProducts) {
    for (const int64_t rows : {1, 2, 20}) {
      Problem problem({product, rows, 9, kDepth, Format::f32, Format::f32, Format::bf16});
      std::fill_n(problem.a.view().as<float>(), rows * kDepth, 1.0f);
      float* b = problem.b.view().as<float>();
      std::fill_n(b, 9 * kDepth, 0x1p-9f);
      for (int64_t n = 0; n < 9; ++n) b[product == Product::forward ? n * kDepth : n] = 1024.0f;
      EXPECT_EQ(run(problem, 1).c.at(0), 1032.0f) << describe(problem.shape);
    }
  }
}

TEST(Gemm, RoundsToNearestEven) {
  Problem problem({Product::forward, 1, 2, 2, Format::f32, Format::f32, Format::bf16});
  float* a = problem.a.view().as<float>();
  float* b = problem.b.view().as<float>();
  a[0] = a[1] = 1.0f;
  b[0] = 1.0f, b[1] = 0x1p-8f;            // halfway between 1 and 1 + 2^-7: down to even
  b[2] = 1.0f + 0x1p-7f, b[3] = 0x1p-8f;  // halfway again: up to even
  const Matrix c = run(problem, 1).c;
  EXPECT_EQ(c.at(0), 1.0f);
  EXPECT_EQ(c.at(1), 1.0f + 0x1p-6f);
}

TEST(Gemm, DoesNotReadCUnlessItAccumulates) {
  for (const Format format : {Format::f32, Format::bf16}) {
    for (const int64_t rows : {1, 20}) {
      Problem problem({Product::forward, rows, 20, 600, format, format, format});
      std::memset(problem.c.bytes.data(), 0xff, problem.c.bytes.size());  // NaN
      EXPECT_EQ(first_error(problem, run(problem, 2).c), "");
    }
  }
}

}  // namespace
}  // namespace plimsoll::cpu
