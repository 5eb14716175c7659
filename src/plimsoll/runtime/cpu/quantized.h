// Quantisers and quantised products of the CPU backend. The CPU has no tensor cores for these
// formats: a product decodes its operands to bf16 (f32 for fp16), in which codes times block scales
// are exact, and multiplies those with f32 sums. Faithful to the formats up to the order of sums.
#pragma once

#include "plimsoll/runtime/backend.h"
#include "plimsoll/runtime/cpu/matmul.h"
#include "plimsoll/runtime/cpu/work.h"

namespace plimsoll::cpu {

size_t quantizer_scratch(const step::Quantize& kind, step::InputTypes in);
Work prepare_quantizer(const step::Quantize& kind, std::vector<View> inputs,
                       std::vector<View> outputs, std::span<std::byte> workspace);

size_t quantized_matmul_scratch(const step::QuantizedMatMul& kind, step::InputTypes in,
                                const ProductSettings& products);
Work prepare_quantized_matmul(const step::QuantizedMatMul& kind, std::vector<View> inputs,
                              const View& c, std::span<std::byte> workspace,
                              const ProductSettings& products);

}  // namespace plimsoll::cpu
