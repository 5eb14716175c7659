// How a matrix is quantised for one operand of a product: format, scales, rounding.
//
// Blocks always run along the columns, the dimension that the product sums over. A quantised matrix
// is up to three tensors:
//   codes         (rows, padded columns) in `format`; the padding holds zeros, or with the Hadamard
//                 transform what that makes of zeros
//   scales        one for each block, see scales_shape; none for the scalings of a whole tensor
//   tensor_scale  (1, 2) f32: what a product multiplies by in the end, and the largest magnitude;
//                 none where the scales are powers of two
// An element stands for decode(code) * scale of its block * tensor_scale[0].
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/numerics/format.h"
#include "plimsoll/numerics/scaling.h"

namespace plimsoll {

enum class Scaling : uint8_t {
  loss,           // one power of two, given: the loss scale of fp16
  current,        // one f32 from the tensor's own largest magnitude
  delayed,        // one f32 from the magnitudes of earlier steps
  block_1x128,    // a power of two as f32 for 128 columns of a row
  block_128x128,  // the same for 128 x 128 tiles
  mx,             // an e8m0 for 32 columns of a row
  nvfp4_1x16,     // an e4m3 for 16 columns of a row, and one f32
  nvfp4_16x16,    // the same for 16 x 16 tiles; scales are repeated in each row of a tile
};

struct Quantization {
  Format format = Format::e4m3;  // f16, e4m3, e5m2 or e2m1
  Scaling scaling = Scaling::current;
  bool power_of_two = false;                // current: the scale is cut to a power of two
  MxRule mx_rule = MxRule::round_up;        // mx
  Nvfp4Variant variant = Nvfp4Variant::te;  // nvfp4
  bool stochastic = false;                  // e2m1: rounded by random bits, else to nearest even
  bool hadamard = false;  // 16 columns at a time go through the Hadamard transform first
  bool operator==(const Quantization&) const = default;
};

// Columns that share a scale; 1 where the whole tensor does.
constexpr int64_t block_columns(Scaling scaling) {
  switch (scaling) {
    case Scaling::block_1x128:
    case Scaling::block_128x128:
      return 128;
    case Scaling::mx:
      return 32;
    case Scaling::nvfp4_1x16:
    case Scaling::nvfp4_16x16:
      return 16;
    default:
      return 1;
  }
}
constexpr int64_t padded_columns(Scaling scaling, int64_t columns) {
  const int64_t block = block_columns(scaling);
  return (columns + block - 1) / block * block;
}

constexpr bool is_nvfp4(Scaling scaling) {
  return scaling == Scaling::nvfp4_1x16 || scaling == Scaling::nvfp4_16x16;
}
constexpr bool has_block_scales(Scaling scaling) { return block_columns(scaling) > 1; }
constexpr bool has_tensor_scale(Scaling scaling) {
  return !has_block_scales(scaling) || is_nvfp4(scaling);
}

// Format of the block scales, and how many rows of scales `rows` rows of codes have. A row of
// scales has padded_columns / block_columns of them.
constexpr Format scale_format(Scaling scaling) {
  return scaling == Scaling::mx ? Format::e8m0 : is_nvfp4(scaling) ? Format::e4m3 : Format::f32;
}
constexpr int64_t scale_rows(Scaling scaling, int64_t rows) {
  return scaling == Scaling::block_128x128 ? (rows + 127) / 128 : rows;
}

// The format in which decode(code) * block scale is exact, in which products are computed.
constexpr Format product_format(Format codes) {
  return codes == Format::f16 ? Format::f32 : Format::bf16;
}

// What the trainer tells every quantiser before a micro-step: a (1, 8) i32 tensor.
struct QuantizerControl {
  uint32_t seed_low = 0, seed_high = 0;
  uint32_t step = 0, micro_step = 0;  // of the random bits
  uint32_t observe = 1;  // whether magnitudes enter the history of delayed scaling (not in an
                         // evaluation) and values that are not finite are counted
  uint32_t collect = 0;  // whether all statistics are collected, which takes time
  int32_t loss_scale_log2 = 0;          // of Scaling::loss
  uint32_t steps_without_overflow = 0;  // with this loss scale
};
static_assert(sizeof(QuantizerControl) == 32);

// A value counts as saturated beyond this multiple of the largest finite code: rounding of the
// scale alone may lift the largest magnitude by an ulp.
inline constexpr float saturation_slack = 1 + 0x1p-16f;

// What a quantiser counts, added up until the trainer clears it: a row of an (n, 8) f32 tensor.
struct QuantizerStatistics {
  float not_finite = 0;                      // Inf or NaN in the input, or, with f16, after scaling
  float elements = 0;                        // the rest only when QuantizerControl::collect is set
  float saturated = 0;                       // beyond the largest finite code
  float flushed = 0;                         // not zero, but quantised to zero
  float least_scale = 0, largest_scale = 0;  // of the blocks, as factors of the codes
  float signal = 0, noise = 0;               // sums of squares: of the input, of the error
};
static_assert(sizeof(QuantizerStatistics) == 32);

}  // namespace plimsoll
