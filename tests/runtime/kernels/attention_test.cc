// The causal attention kernels against the plain loops in double.
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/runtime/cpu/reference/reference.h"

namespace plimsoll::cpu {
namespace {

using reference::Reals;

// A matrix and its bytes, with guard bytes behind that nothing may touch.
class Array {
 public:
  Array(Format format, int64_t rows, int64_t columns)
      : format_(format),
        rows_(rows),
        columns_(columns),
        bytes_(rows * columns * bytes_per_element(format) + guard, std::byte{0xa5}) {}

  View view() { return {bytes_.data(), format_, rows_, columns_}; }
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (int64_t i = 0; i < rows_ * columns_; ++i) {
      if (format_ == Format::bf16) {
        view().as<bf16>()[i] = bf16(uniform(random));
      } else {
        view().as<float>()[i] = uniform(random);
      }
    }
  }
  Reals reals() {
    Reals values;
    for (int64_t i = 0; i < rows_ * columns_; ++i) {
      values.push_back(format_ == Format::bf16 ? static_cast<float>(view().as<bf16>()[i])
                                               : view().as<float>()[i]);
    }
    return values;
  }
  bool guard_is_intact() const {
    return std::all_of(bytes_.end() - guard, bytes_.end(),
                       [](std::byte b) { return b == std::byte{0xa5}; });
  }
  friend bool operator==(const Array& a, const Array& b) { return a.bytes_ == b.bytes_; }

 private:
  static constexpr int64_t guard = 64;
  Format format_;
  int64_t rows_, columns_;
  std::vector<std::byte> bytes_;
};

struct AlignedWorkspace {
  explicit AlignedWorkspace(size_t size) : bytes(size + 128, std::byte{0xff}), size(size) {
    start = (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
  }
  Workspace span() { return {bytes.data() + start, size}; }
  bool overrun() const {
    return !std::all_of(bytes.begin() + start + size, bytes.end(),
                        [](std::byte b) { return b == std::byte{0xff}; });
  }
  std::vector<std::byte> bytes;
  size_t size, start;
};

struct Problem {
  HeadShape shape;
  int64_t micro_batch = 1;
  Format format = Format::f32;
  bool separate_qk = false;
  unsigned seed = 1;
};

struct Results {
  Array qk, qkv, dout, out, lse, dqkv;
};

Results run(const Problem& problem, int threads) {
  const HeadShape& shape = problem.shape;
  const int64_t tokens = problem.micro_batch * shape.sequence;
  const int64_t width = shape.heads * shape.head_dim;
  Results r{Array(problem.format, tokens, shape.qk_columns()),
            Array(problem.format, tokens, shape.qkv_columns()),
            Array(problem.format, tokens, width),
            Array(problem.format, tokens, width),
            Array(Format::f32, tokens, shape.heads),
            Array(problem.format, tokens, shape.qkv_columns())};
  std::mt19937 random(problem.seed);
  r.qkv.fill(random);
  r.dout.fill(random);
  if (problem.separate_qk) {
    r.qk.fill(random);
  } else {
    r.qk = r.qkv;
  }
  const View qk = problem.separate_qk ? r.qk.view() : r.qkv.view();
  AlignedWorkspace forward(attention_workspace(shape, threads));
  attention(qk, r.qkv.view(), shape, r.out.view(), r.lse.view(), forward.span(), threads);
  EXPECT_FALSE(forward.overrun());
  AlignedWorkspace backward(attention_backward_workspace(tokens, shape, threads));
  attention_backward(r.dout.view(), r.out.view(), qk, r.qkv.view(), r.lse.view(), shape,
                     r.dqkv.view(), backward.span(), threads);
  EXPECT_FALSE(backward.overrun());
  EXPECT_TRUE(r.out.guard_is_intact() && r.lse.guard_is_intact() && r.dqkv.guard_is_intact());
  return r;
}

::testing::AssertionResult near(const char* name, const Reals& got, const Reals& want,
                                double relative, double absolute, int64_t columns) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << name << ": wrong size";
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= absolute + relative * std::abs(want[i]))) {
      return ::testing::AssertionFailure() << name << "[" << i / columns << ", " << i % columns
                                           << "] is " << got[i] << ", the reference is " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

double largest(const Reals& values) {
  double m = 0;
  for (double v : values) m = std::max(m, std::abs(v));
  return m;
}

::testing::AssertionResult agrees_with_reference(const Problem& problem, int threads) {
  Results r = run(problem, threads);
  const HeadShape& shape = problem.shape;
  const Reals qk = r.qk.reals(), qkv = r.qkv.reals();
  const auto [out, lse] = reference::attention(qk, qkv, shape);
  const Reals dqkv = reference::attention_backward(r.dout.reals(), qk, qkv, shape);
  // bf16 rounds once at the end; and `out`, rounded, enters every score's gradient through delta,
  // off by up to 2^-9 of the sum of |dout * out|, which for few dimensions is much of the gradient.
  const bool half = problem.format == Format::bf16;
  const double relative = half ? 0x1p-8 : 0;
  const auto result =
      near("out", r.out.reals(), out, relative, 2e-6 * largest(out), shape.heads * shape.head_dim);
  if (!result) return result;
  const auto lse_result = near("lse", r.lse.reals(), lse, 1e-6, 2e-6, shape.heads);
  if (!lse_result) return lse_result;
  return near("dqkv", r.dqkv.reals(), dqkv, relative, (half ? 2e-2 : 1e-5) * largest(dqkv),
              shape.qkv_columns());
}

// Sequences long enough for several blocks where heads are few and small.
Problem draw_problem() {
  Problem p;
  p.shape.query_groups = *rc::gen::element<int64_t>(1, 1, 2, 3);
  p.shape.heads = p.shape.query_groups * *rc::gen::element<int64_t>(1, 1, 2, 4, 8);
  p.shape.head_dim = *rc::gen::element<int64_t>(1, 3, 8, 16, 40, 64, 80, 128);
  p.micro_batch = *rc::gen::inRange<int64_t>(1, 4);
  const double budget = 1e6 / static_cast<double>(p.shape.heads * p.shape.head_dim * p.micro_batch);
  const int64_t longest = std::clamp<int64_t>(std::llround(std::sqrt(budget)), 20, 400);
  p.shape.sequence = *rc::gen::inRange<int64_t>(1, longest + 1);
  p.format = *rc::gen::element(Format::f32, Format::bf16);
  p.separate_qk = *rc::gen::arbitrary<bool>();
  p.seed = *rc::gen::arbitrary<unsigned>();
  return p;
}

std::string to_text(const Problem& p) {
  return fmt::format(
      "micro_batch {}, sequence {}, heads {}, query_groups {}, head_dim {}, {}, {} qk, seed {}",
      p.micro_batch, p.shape.sequence, p.shape.heads, p.shape.query_groups, p.shape.head_dim,
      name(p.format), p.separate_qk ? "separate" : "same", p.seed);
}

RC_GTEST_PROP(Attention, AgreesWithTheReferenceForAnyShape, ()) {
  const Problem problem = draw_problem();
  RC_LOG(to_text(problem));
  const auto result = agrees_with_reference(problem, *rc::gen::inRange(1, 4));
  if (!result) RC_FAIL(result.message());
}

TEST(Attention, AgreesWithTheReferenceOverSeveralBlocks) {
  for (Format format : {Format::f32, Format::bf16}) {
    for (int64_t sequence : {95, 96, 97, 191, 192, 193, 400}) {
      const Problem p{{2, 1, 64, sequence}, 1, format, true, 5};
      EXPECT_TRUE(agrees_with_reference(p, 2)) << to_text(p);
    }
  }
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (Format format : {Format::f32, Format::bf16}) {
    for (const HeadShape& shape : {HeadShape{4, 2, 40, 1000}, HeadShape{6, 2, 16, 50}}) {
      Results one = run({shape, 2, format, false, 3}, 1);
      for (int threads : {2, 3, 5}) {
        const Results more = run({shape, 2, format, false, 3}, threads);
        EXPECT_TRUE(one.out == more.out) << threads << " threads, " << name(format);
        EXPECT_TRUE(one.lse == more.lse) << threads << " threads, " << name(format);
        EXPECT_TRUE(one.dqkv == more.dqkv) << threads << " threads, " << name(format);
      }
    }
  }
}

TEST(Attention, AgreesWithTheReferenceOnEveryInstructionSetOfThisCpu) {
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (const HeadShape& shape : {HeadShape{2, 1, 40, 230}, HeadShape{3, 3, 3, 130}}) {
      for (Format format : {Format::f32, Format::bf16}) {
        const Problem p{shape, 1, format, true, 11};
        EXPECT_TRUE(agrees_with_reference(p, 2)) << hwy::TargetName(target) << ", " << to_text(p);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(supported);
}

// A token must not see later ones: changing them leaves its results alone, bit for bit.
TEST(Attention, DoesNotLookAtLaterTokens) {
  const Problem p{{2, 1, 16, 150}, 1, Format::f32, false, 2};
  Results r = run(p, 1);
  const int64_t changed = 107, width = 32, columns = p.shape.qkv_columns();
  Array qkv = r.qkv, out = r.out, lse = r.lse;
  std::fill_n(qkv.view().as<float>() + changed * columns, (150 - changed) * columns, 1e30f);
  AlignedWorkspace workspace(attention_workspace(p.shape, 1));
  attention(qkv.view(), qkv.view(), p.shape, out.view(), lse.view(), workspace.span(), 1);
  EXPECT_EQ(std::memcmp(out.view().data, r.out.view().data, changed * width * sizeof(float)), 0);
}

// Large scores: the softmax is one-hot, nothing overflows.
TEST(Attention, StaysFiniteForLargeScores) {
  const Problem p{{1, 1, 8, 130}, 1, Format::f32, false, 4};
  Results r = run(p, 1);
  for (int64_t i = 0; i < r.qkv.view().elements(); ++i) r.qkv.view().as<float>()[i] *= 1000;
  AlignedWorkspace workspace(attention_workspace(p.shape, 1));
  attention(r.qkv.view(), r.qkv.view(), p.shape, r.out.view(), r.lse.view(), workspace.span(), 1);
  const auto want = reference::attention(r.qkv.reals(), r.qkv.reals(), p.shape);
  // Scores reach 1e7, where neighbouring f32 are 1 apart.
  EXPECT_TRUE(near("lse", r.lse.reals(), want.lse, 0, 1, 1));
  EXPECT_TRUE(std::ranges::all_of(r.out.reals(), [](double x) { return std::isfinite(x); }));
}

TEST(Attention, NeedsLittleWorkspaceForLongSequences) {
  const HeadShape shape{4, 4, 64, 131072};
  EXPECT_LE(attention_workspace(shape, 2), size_t{1} << 20);
  // One query head's gradients in f32 and the blocks of two threads.
  EXPECT_LE(attention_backward_workspace(131072, shape, 2), 131072u * 65 * 4 + (size_t{1} << 20));
}

TEST(AttentionReference, BackwardIsTheDerivativeOfForward) {
  const HeadShape shape{2, 1, 3, 4};
  std::mt19937 random(9);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Reals qkv(2 * 4 * shape.qkv_columns()), dout(2 * 4 * 6);
  for (double& x : qkv) x = uniform(random);
  for (double& x : dout) x = uniform(random);
  const auto loss = [&](const Reals& at) {
    const Reals out = reference::attention(at, at, shape).out;
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  const Reals gradient = reference::attention_backward(dout, qkv, qkv, shape);
  for (size_t i = 0; i < qkv.size(); ++i) {
    Reals up = qkv, down = qkv;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / 2e-5, 1e-8) << "dqkv[" << i << "]";
  }
}

}  // namespace
}  // namespace plimsoll::cpu
