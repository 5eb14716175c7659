// How much noise each recipe adds: to a tensor, and to the product of two tensors.
//
// The expected figures were computed apart from this code, from a million elements each; they are
// met within 0.5 dB. Here tensors have 2^18 elements and products 128 x 128, to be quick. That
// leaves 0.1 dB to chance for a tensor, 0.2 dB under Student's t, and 0.3 dB for a product with
// outlier channels, of which it sees ten. One figure is our own, over 2^23 elements, because a few
// saturated elements decide it: MX with OCP's floor under Student's t, 29.5 dB instead of 29.0.
#include "tests/numerics/quality.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "samples.h"

namespace plimsoll {
namespace {

TEST(SignalToNoise, IsTenTimesTheLogarithmOfThePowers) {
  const float x[] = {3, 4}, off[] = {3, 3.5f};
  EXPECT_DOUBLE_EQ(signal_to_noise_db(x, off), 20);
  EXPECT_EQ(signal_to_noise_db(x, x), std::numeric_limits<double>::infinity());
}

// The first 128 rows of a b^T, both contracted along their columns, a multiple of four.
std::vector<float> product(const Matrix& a, const Matrix& b) {
  std::vector<float> result;
  for (size_t i = 0; i < 128; ++i) {
    for (size_t j = 0; j < b.rows; ++j) {
      const float *x = a.row(i).data(), *y = b.row(j).data();
      float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;  // unrolled: tests are not optimised
      for (size_t k = 0; k < a.columns; k += 4) {
        sum0 += x[k] * y[k];
        sum1 += x[k + 1] * y[k + 1];
        sum2 += x[k + 2] * y[k + 2];
        sum3 += x[k + 3] * y[k + 3];
      }
      result.push_back(sum0 + sum1 + sum2 + sum3);
    }
  }
  return result;
}

constexpr size_t columns = 1024;
constexpr Sample samples[] = {Sample::gaussian, Sample::outlier_channels, Sample::student_t3};
constexpr const char* names[] = {"Gaussian", "outlier channels", "Student's t"};

// A tensor of each sample and its product with a Gaussian, as of activations with a weight.
struct Originals {
  std::array<Matrix, 3> tensors;
  Matrix weight;
  std::array<std::vector<float>, 3> products;
};

Originals make_originals() {
  Originals originals;
  originals.weight = sample(Sample::gaussian, 128, columns, 2);
  for (size_t s = 0; s < 3; ++s) {
    originals.tensors[s] = sample(samples[s], 256, columns, 1);
    originals.products[s] = product(originals.tensors[s], originals.weight);
  }
  return originals;
}

// `tensor` and `gemm`: dB under the samples above; 0 where no figure is known.
template <typename Quantize>
void expect_quality(const char* recipe, std::array<double, 3> tensor, std::array<double, 3> gemm,
                    Quantize quantize) {
  static const Originals originals = make_originals();
  const Matrix weight = quantize(originals.weight);
  for (size_t s = 0; s < 3; ++s) {
    if (tensor[s] == 0) continue;
    const Matrix x = quantize(originals.tensors[s]);
    EXPECT_NEAR(signal_to_noise_db(originals.tensors[s].values, x.values), tensor[s], 0.5)
        << recipe << " of " << names[s];
    EXPECT_NEAR(signal_to_noise_db(originals.products[s], product(x, weight)), gemm[s], 0.5)
        << "product in " << recipe << " of " << names[s];
  }
}

TEST(Quality, IsThatOfEveryRecipe) {
  expect_quality("E4M3, tensor scale", {31.6, 31.5, 31.6}, {28.5, 28.5, 28.6},
                 with_tensor_scale<e4m3>);
  expect_quality("E5M2, tensor scale", {25.6, 0, 0}, {22.6, 0, 0}, with_tensor_scale<e5m2>);
  expect_quality("E4M3, blocks of 128", {31.5, 31.5, 31.5}, {28.5, 28.5, 28.5}, with_blocks_of_128);
  expect_quality("MXFP8", {31.5, 31.5, 31.5}, {28.5, 28.5, 28.5}, with_mx<e4m3, MxRule::round_up>);
  expect_quality("MXFP8, floor", {30.7, 28.0, 29.5}, {27.6, 26.3, 26.6},
                 with_mx<e4m3, MxRule::floor>);
  expect_quality("NVFP4", {20.4, 23.6, 20.8}, {17.4, 18.6, 17.6}, with_nvfp4<Nvfp4Recipe::nearest>);
  expect_quality("NVFP4 in tiles", {19.1, 18.2, 15.1}, {16.1, 15.6, 13.7},
                 with_nvfp4<Nvfp4Recipe::tiles>);
  expect_quality("NVFP4, stochastic", {17.3, 18.4, 17.4}, {14.2, 14.8, 14.3},
                 with_nvfp4<Nvfp4Recipe::stochastic>);
  expect_quality("MXFP4, floor", {18.8, 16.2, 16.9}, {15.8, 14.3, 14.8},
                 with_mx<e2m1, MxRule::floor>);
}

}  // namespace
}  // namespace plimsoll
