#include "plimsoll/runtime/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/gemm_problem.h"

namespace plimsoll::cpu {
namespace {

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
