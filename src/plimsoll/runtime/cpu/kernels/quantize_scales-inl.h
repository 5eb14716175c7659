// The scales of a tile's blocks from their largest magnitudes, by numerics/scaling.h.
#include "hwy/highway.h"
#include "plimsoll/numerics/quantization.h"
#include "plimsoll/runtime/cpu/kernels/quantize_tile-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_SCALES_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_SCALES_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_SCALES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

inline constexpr int64_t most_blocks = tile_elements / 16;

// In the order of the tile's blocks. Codes of e8m0 or e4m3 are written to `code`, f32 scales to
// `value`.
struct BlockScales {
  alignas(64) float amax[most_blocks];
  alignas(64) float multiplier[most_blocks];
  alignas(64) uint8_t code[most_blocks];
  float value[tile_side];
};

inline float largest_finite(Format format) {
  return format == Format::e4m3   ? max_finite<e4m3>
         : format == Format::e5m2 ? max_finite<e5m2>
         : format == Format::e2m1 ? max_finite<e2m1>
                                  : f16_max;
}

template <MiniFloat F>
void mx_scales(MxRule rule, int64_t begin, int64_t end, BlockScales& s) {
  for (int64_t i = begin; i < end; ++i) {
    const Mx8Scale scale =
        rule == MxRule::round_up ? mx_scale<F>(s.amax[i]) : mx_scale_floor<F>(s.amax[i]);
    s.code[i] = scale.code;
    s.multiplier[i] = scale.inverse;
  }
}

// nvfp4_block_scale. Multipliers past f32 are cut to its largest number in every variant: a block
// of zeros times Inf would be NaN.
inline void nvfp4_scales(float s_enc, Nvfp4Variant variant, int64_t begin, int64_t end,
                         BlockScales& s) {
  const float s_dec = divide_rn(1, s_enc);
  const VF decode = set(s_dec), encode = set(s_enc);
  const VF sixth = set(multiply_rn(s_enc, static_cast<float>(1.0 / 6)));
  const VF numerator = set(variant == Nvfp4Variant::torchao ? divide_rn(1, s_dec) : 1);
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(DF()))) {
    const VF amax = load(s.amax + i, Whole());
    VF target;
    if (variant == Nvfp4Variant::te) {
      target = hn::Mul(amax, sixth);
    } else if (variant == Nvfp4Variant::paper) {
      target = hn::Mul(hn::Div(amax, set(6)), encode);
    } else {
      target = hn::Max(hn::Div(hn::Div(amax, set(6)), decode), set(0x1p-6f));
    }
    const VI code = encode_nearest<Format::e4m3>(target);
    const VF value = decode_codes<Format::e4m3>(code);
    const VF divisor = variant == Nvfp4Variant::torchao ? value : hn::Mul(value, decode);
    store_codes(code, s.code + i);
    store(hn::Min(hn::Div(numerator, divisor), set(f32_max)), s.multiplier + i, Whole());
  }
}

// Gives blocks of 16 that are neighbours across their direction the largest of their amax:
// amax[i * step] for i < count.
HWY_INLINE void join_amax(int64_t count, int64_t step, float* amax) {
  for (int64_t i = 0; i < count; i += 16) {
    float largest = 0;
    for (int64_t k = i; k < i + 16; ++k) largest = std::max(largest, amax[k * step]);
    for (int64_t k = i; k < i + 16; ++k) amax[k * step] = largest;
  }
}

// For blocks along the columns, or the rows. `multiplier`: the scale of a tensor, nvfp4's S_enc.
inline void scale_blocks(const Quantization& q, const Tile& tile, bool along_rows, float multiplier,
                         BlockScales& s) {
  const int64_t width = has_block_scales(q.scaling) ? block_columns(q.scaling) : tile_side;
  const int64_t length = along_rows ? tile.padded_rows : tile.padded_columns;
  const int64_t across = along_rows ? tile.padded_columns : tile.padded_rows;
  const int64_t blocks = (length + width - 1) / width;
  // A row of scales for each block where blocks run along rows, so that it may have gaps.
  const int64_t count = along_rows ? blocks * tile_side : across * blocks;
  if (!has_block_scales(q.scaling)) {
    std::fill_n(s.multiplier, count, multiplier);
    return;
  }
  if (q.scaling == Scaling::block_128x128) {
    const float scale =
        tensor_scale(tile.magnitudes.amax(), largest_finite(q.format), true, bf16_max);
    std::fill_n(s.multiplier, count, scale);
    s.value[0] = divide_rn(1, scale);
    return;
  }
  if (q.scaling == Scaling::mx) {
    along_rows ? amax_along_rows<true>(tile, width, s.amax)
               : amax_along_columns<true>(tile, width, s.amax);
  } else {
    along_rows ? amax_along_rows<false>(tile, width, s.amax)
               : amax_along_columns<false>(tile, width, s.amax);
  }
  for (int64_t b = 0; b < (along_rows ? blocks : 1); ++b) {
    const int64_t begin = b * tile_side;
    const int64_t end = along_rows ? begin + across : count;
    if (q.scaling == Scaling::block_1x128) {
      for (int64_t i = begin; i < end; ++i) {
        s.multiplier[i] = tensor_scale(s.amax[i], largest_finite(q.format), true, bf16_max);
        s.value[i] = divide_rn(1, s.multiplier[i]);
      }
    } else if (q.scaling == Scaling::mx) {
      q.format == Format::e5m2 ? mx_scales<e5m2>(q.mx_rule, begin, end, s)
                               : mx_scales<e4m3>(q.mx_rule, begin, end, s);
    } else {
      if (q.scaling == Scaling::nvfp4_16x16 && along_rows) join_amax(across, 1, s.amax + begin);
      if (q.scaling == Scaling::nvfp4_16x16 && !along_rows) {
        for (int64_t i = 0; i < blocks; ++i) join_amax(across, blocks, s.amax + i);
      }
      nvfp4_scales(multiplier, q.variant, begin, end, s);
    }
  }
}

// Writes the scales of a tile at (row, column) of the matrix that is quantised, of which it has
// `rows` rows and `columns` columns.
inline void write_scales(const Quantization& q, const BlockScales& s, bool along_rows, int64_t rows,
                         int64_t columns, int64_t padded_columns, const View& to, int64_t row,
                         int64_t column) {
  if (!has_block_scales(q.scaling)) return;
  const int64_t width = block_columns(q.scaling);
  const int64_t blocks = (columns + width - 1) / width;
  if (q.scaling == Scaling::block_128x128) {
    to.as<float>()[row / 128 * to.columns + column / 128] = s.value[0];
    return;
  }
  // Steps from row to row and from block to block of the tile's scales.
  const int64_t row_step = along_rows ? 1 : (padded_columns + width - 1) / width;
  const int64_t block_step = along_rows ? tile_side : 1;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = (row + r) * to.columns + column / width;
    if (q.scaling == Scaling::block_1x128) {
      to.as<float>()[at] = s.value[r * row_step];
      continue;
    }
    for (int64_t b = 0; b < blocks; ++b) {
      to.as<uint8_t>()[at + b] = s.code[r * row_step + b * block_step];
    }
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
