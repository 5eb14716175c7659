// Compiles only when every header of numerics/ that kernels use can be called from a kernel:
//
//   nvcc -std=c++20 --expt-relaxed-constexpr -arch=sm_90 -Isrc -dc tests/numerics/device_headers.cu
//
// Nothing runs it.
#include "plimsoll/numerics/bf16.h"
#include "plimsoll/numerics/delayed_scaling.h"
#include "plimsoll/numerics/e8m0.h"
#include "plimsoll/numerics/hadamard.h"
#include "plimsoll/numerics/minifloat.h"
#include "plimsoll/numerics/random.h"
#include "plimsoll/numerics/scale_layout.h"
#include "plimsoll/numerics/scaling.h"
#include "plimsoll/numerics/stochastic.h"

namespace plimsoll {
template <MiniFloat F>
__global__ void minifloat(const float* x, uint8_t* codes, float* values) {
  codes[0] = encode<F>(x[0]);
  if constexpr (layout(F).nan_code >= 0) codes[1] = encode_overflowing<F>(x[0]);
  values[0] = decode<F>(codes[0]) + max_finite<F>;
}

void launch_minifloat(MiniFloat format, const float* x, uint8_t* codes, float* values) {
  switch (format) {
    case e4m3:
      return minifloat<e4m3><<<1, 1>>>(x, codes, values);
    case e5m2:
      return minifloat<e5m2><<<1, 1>>>(x, codes, values);
    case e2m1:
      return minifloat<e2m1><<<1, 1>>>(x, codes, values);
    case e2m3:
      return minifloat<e2m3><<<1, 1>>>(x, codes, values);
    case e3m2:
      return minifloat<e3m2><<<1, 1>>>(x, codes, values);
  }
}

__global__ void narrow_formats(const float* x, uint8_t* codes, float* values) {
  codes[0] = pack_e2m1(encode<e2m1>(x[0]), unpack_e2m1(codes[0], 1));
  values[0] = decode<e4m3>(encode<e4m3>(x[1]));
  values[1] = static_cast<float>(bf16(x[1]));
}

__global__ void scales(const float* x, uint8_t* codes, float* values) {
  codes[0] = e8m0_round_up(x[0]);
  codes[1] = e8m0_round_up_overflowing(x[0]);
  codes[2] = e8m0_truncate(x[0]);
  codes[3] = e8m0_truncate_overflowing(x[0]);
  codes[4] = e8m0_floor(x[0], 8);
  values[0] = e8m0_value(codes[0]);
  values[1] = e8m0_reciprocal(codes[1]);
  values[2] = tensor_scale(x[1], max_finite<e4m3>, false);
  values[3] = block_scale_1x128(x[1]);
  codes[5] = mx_scale(x[2]).code;
  codes[6] = mx_scale_floor<e5m2>(x[2]).code;
  const float s_enc = nvfp4_encode_scale(x[3]);
  values[4] = nvfp4_block_scale(x[4], s_enc).inverse;
  values[5] = nvfp4_block_scale(x[4], s_enc, Nvfp4Variant::paper).inverse;
  values[6] = nvfp4_block_scale(x[4], s_enc, Nvfp4Variant::torchao).inverse;
}

__global__ void blocks(const float* x, const bf16* narrow, MxBlock* mx, Nvfp4Block* nvfp4,
                       StreamKey key, float* values) {
  const std::span<const float, 32> wide(x, 32);
  const std::span<const float, 16> half(x, 16);
  *mx = quantize_mx(wide, MxRule::floor);
  const float s_enc = nvfp4_encode_scale(amax(std::span(narrow, 32)));
  nvfp4[0] = quantize_nvfp4_block(half, s_enc);
  nvfp4[1] = quantize_nvfp4_block(half, nvfp4_block_scale(amax(half), s_enc),
                                  random_bytes16(random_stream(key), blockIdx.x));
  nvfp4[1].codes[0] = encode_e2m1_stochastic(x[0], random_byte(key, threadIdx.x));
  if (any_nonfinite(std::span(narrow, 32)) || any_nonfinite(wide)) values[0] = 1;
  hadamard16(half, values + 16);
  hadamard16_unrounded(half, values + 32);
}

__global__ void state(float* history, float* scale, float amax, int64_t* offset) {
  DelayedScaling delayed{std::span(history, 1024), *scale};
  delayed.observe(amax);
  delayed.update(AmaxAlgorithm::max, max_finite<e4m3>, 1);
  *offset = swizzled_offset(threadIdx.x, blockIdx.x, gridDim.x) + swizzled_bytes(128, 4);
}

}  // namespace plimsoll
