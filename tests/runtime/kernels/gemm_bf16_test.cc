#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

#include <gtest/gtest.h>

#include "tests/runtime/kernels/gemm_problem.h"

namespace plimsoll::cpu {
namespace {

// Those of this CPU, `portable` excepted, which gemm_test.cc tests; possibly none.
std::vector<Bf16Kernel> kernels() {
  std::vector<Bf16Kernel> all = bf16_kernels();
  all.pop_back();
  return all;
}

rc::Gen<GemmShape> any_bf16_shape(int64_t most) {
  return rc::gen::map(any_shape(most), [](GemmShape shape) {
    shape.a = shape.b = Format::bf16;
    return shape;
  });
}

TEST(Bf16Gemm, EndsItsListWithThePortableKernel) {
  ASSERT_FALSE(bf16_kernels().empty());
  EXPECT_EQ(bf16_kernels().back(), Bf16Kernel::portable);
}

RC_GTEST_PROP(Bf16Gemm, MatchesSumsInDouble, ()) {
  const Problem problem(*any_bf16_shape(120));
  const int threads = *rc::gen::inRange(1, 4);
  for (const Bf16Kernel kernel : kernels()) {
    const std::string error = first_error(problem, run(problem, threads, kernel).c);
    if (!error.empty()) RC_FAIL(std::string(name(kernel)) + ": " + error);
  }
}

// Several blocks of rows, columns and k.
TEST(Bf16Gemm, MatchesSumsInDoubleWhereBlocksEnd) {
  for (const Bf16Kernel kernel : kernels()) {
    for (const Product product : kProducts) {
      for (const Format format : {Format::f32, Format::bf16}) {
        for (const auto& [m, n, k] : {std::tuple{400, 19, 520}, {17, 530, 257}, {13, 33, 1100}}) {
          const Problem problem({product, m, n, k, Format::bf16, Format::bf16, format, true, true});
          EXPECT_EQ(first_error(problem, run(problem, 1, kernel).c), "") << name(kernel);
        }
      }
    }
  }
}

RC_GTEST_PROP(Bf16Gemm, IsBitIdenticalForAnyNumberOfThreads, ()) {
  const Problem problem(*any_bf16_shape(300));
  const int threads = *rc::gen::inRange(2, 9);
  for (const Bf16Kernel kernel : kernels()) {
    const std::string difference =
        first_difference(problem.shape, run(problem, threads, kernel).c, run(problem, 1, kernel).c);
    if (!difference.empty()) RC_FAIL(std::string(name(kernel)) + ": " + difference);
  }
}

// A row of c is the same bits whichever rows are computed with it: chunks of tokens rely on it.
RC_GTEST_PROP(Bf16Gemm, ComputesARowAloneAsAmongOthers, ()) {
  GemmShape shape = *any_shape(150);
  if (shape.product == Product::weight_gradient) shape.product = Product::forward;
  const Problem problem(shape);
  const int64_t row = *rc::gen::inRange<int64_t>(0, shape.m);
  for (const Bf16Kernel kernel : bf16_kernels()) {
    if (kernel != Bf16Kernel::portable && !takes(kernel, shape)) continue;
    const Result whole = run(problem, 2, kernel);
    GemmShape one = shape;
    one.m = 1;
    Problem alone(one);
    const auto copy_row = [&](const Matrix& from, Matrix& to) {
      const size_t bytes = to.bytes.size();
      std::memcpy(to.bytes.data(), from.bytes.data() + static_cast<size_t>(row) * bytes, bytes);
    };
    copy_row(problem.a, alone.a);
    copy_row(problem.c, alone.c);
    alone.b = problem.b;
    alone.bias = problem.bias;
    Matrix expected = alone.c;
    copy_row(whole.c, expected);
    const std::string difference = first_difference(one, run(alone, 1, kernel).c, expected);
    if (!difference.empty()) RC_FAIL(std::string(name(kernel)) + ": " + difference);
  }
}

// A weight gradient summed over chunks of 256 tokens keeps its bits.
TEST(Bf16Gemm, SumsAWeightGradientInChunks) {
  for (const Bf16Kernel kernel : kernels()) {
    const GemmShape shape{Product::weight_gradient,
                          40,
                          50,
                          700,
                          Format::bf16,
                          Format::bf16,
                          Format::f32,
                          false,
                          true};
    const Problem problem(shape);
    const Result whole = run(problem, 2, kernel);
    Matrix c = problem.c;
    for (int64_t k = 0; k < shape.k; k += 256) {
      GemmShape part = shape;
      part.k = std::min<int64_t>(256, shape.k - k);
      Problem chunk(part);
      std::memcpy(chunk.a.bytes.data(), problem.a.view().as<bf16>() + k * shape.m,
                  chunk.a.bytes.size());
      std::memcpy(chunk.b.bytes.data(), problem.b.view().as<bf16>() + k * shape.n,
                  chunk.b.bytes.size());
      chunk.c = c;
      c = run(chunk, 3, kernel).c;
    }
    EXPECT_EQ(first_difference(shape, c, whole.c), "") << name(kernel);
  }
}

RC_GTEST_PROP(Bf16Gemm, StaysInItsWorkspace, ()) {
  const Problem problem(*any_bf16_shape(300));
  const int threads = *rc::gen::inRange(1, 9);
  for (const Bf16Kernel kernel : kernels()) {
    if (run(problem, threads, kernel).workspace_overrun) RC_FAIL(describe(problem.shape));
  }
}

TEST(Bf16Gemm, DoesNotReadCUnlessItAccumulates) {
  for (const Bf16Kernel kernel : kernels()) {
    for (const Format format : {Format::f32, Format::bf16}) {
      Problem problem({Product::forward, 20, 20, 600, Format::bf16, Format::bf16, format});
      std::memset(problem.c.bytes.data(), 0xff, problem.c.bytes.size());  // NaN
      EXPECT_EQ(first_error(problem, run(problem, 2, kernel).c), "") << name(kernel);
    }
  }
}

}  // namespace
}  // namespace plimsoll::cpu
