// Quantising and dequantising as plain loops over numerics/: what the kernels of
// ../kernels/quantize.h, where the contract stands, must equal bit for bit. Tensors are the bytes
// that the kernels would write.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/numerics/quantization.h"
#include "plimsoll/step/ops/quantize.h"

namespace plimsoll::cpu::reference {

struct Quantized {
  std::vector<uint8_t> codes, scales;
  std::vector<float> tensor_scale;
};
struct QuantizeResult {
  Quantized rows, columns;  // empty where not wanted
};
// x has `columns` columns.
QuantizeResult quantize(const step::Quantize& kind, std::span<const bf16> x, int64_t columns,
                        const QuantizerControl& control, std::span<float> state,
                        QuantizerStatistics& statistics);

// `columns`: padded. Values before they are rounded to product_format.
std::vector<float> dequantize(const Quantization& kind, const Quantized& from, int64_t columns);

}  // namespace plimsoll::cpu::reference
