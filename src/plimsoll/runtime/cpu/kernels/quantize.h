// The CPU kernels that quantise and dequantise; the op kinds stand in step/ops/quantize.h, the
// layout of a quantised matrix in numerics/quantization.h, the arithmetic in numerics/. The same in
// plain loops stands in ../reference/quantize.h; results are equal to it bit for bit, on every
// target and with any number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/numerics/delayed_scaling.h"
#include "plimsoll/numerics/quantization.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/step/ops/quantize.h"

namespace plimsoll::cpu {

// A quantised matrix of (rows, columns), see numerics/quantization.h. `scales` and `tensor_scale`
// are empty where the scaling has none.
struct QuantizedView {
  View codes;         // (rows, padded columns)
  View scales;        // (scale_rows, padded columns / block_columns)
  View tensor_scale;  // (1, 2) f32
  explicit operator bool() const { return static_cast<bool>(codes); }
};

size_t quantize_workspace(const step::Quantize&, int64_t rows, int64_t columns);

// Quantises x (R, C) bf16 by kind.rows, and x^T by kind.columns; no codes: not wanted.
//
//   loss      code = f16(x * 2^loss_scale_log2), which overflows to Inf
//   current   code = encode(x * s), s = tensor_scale(amax of x)
//   delayed   the same with s = state.back(), or current scaling's s while that is 0
//   block, mx, nvfp4: see numerics/scaling.h; a block is of the matrix that is quantised, so of x^T
//             for kind.columns; nvfp4's amax of the tensor is that after the Hadamard transform
//
// tensor_scale = {1 / s, amax}; nvfp4: {1 / S_enc, amax}, so the factor of a product is the product
// of its operands' two. Codes saturate, and NaN becomes the format's NaN where it has one; an amax
// ignores NaN, but that of an mx block.
// Padding: the codes are 0, whatever the block's scale. With the Hadamard transform, whose groups
// of 16 are padded by zeros before it, the padding takes part in the products and keeps its codes.
// A block with no value but 0 dequantises to 0.
// The random bits of stochastic rounding belong to the element row * padded columns + column of the
// stream {seed, step, micro_step, kind.layer, 2 * kind.tensor + (is kind.columns)}.
//
// state: of delayed, history and scale; its history observes amax where control.observe is set.
// statistics: added to. not_finite where control.observe is set: Inf and NaN of x, or of the codes
// where those are f16. The rest where control.collect is set, which takes time, over kind.rows if
// wanted, else kind.columns: an element is a value before scaling, so after the Hadamard transform,
// with its padding, if there is one; it is saturated when |x * s| is beyond the largest finite
// code; scales are those of blocks, or the tensor, with some value but 0 and NaN; values whose code
// is Inf or NaN, or which are so themselves, do not enter signal and noise.
void quantize(const step::Quantize& kind, const View& x, const QuantizerControl& control,
              std::span<float> state, QuantizerStatistics& statistics, const QuantizedView& rows,
              const QuantizedView& columns, Workspace workspace);

// to (rows, padded columns) in product_format = decode(code) * scale of its block. Exact, but where
// that lies beyond bf16's range (Inf) or among its subnormals (nearest even). The factor of the
// tensor is not applied.
void dequantize(const Quantization& kind, const QuantizedView& from, const View& to);

// DelayedScaling::update of a state (history, then the scale).
void update_scaling(AmaxAlgorithm algorithm, float format_max, int margin, std::span<float> state);

// quantize_statistics.cc: all but not_finite, of one matrix quantised before. `multiplier` is the
// scale of a tensor, or nvfp4's S_enc.
size_t quantize_statistics_workspace(int64_t rows);
void quantize_statistics(const Quantization& kind, const View& x, bool transposed, float multiplier,
                         const QuantizedView& quantized, QuantizerStatistics& statistics,
                         Workspace workspace);

}  // namespace plimsoll::cpu
