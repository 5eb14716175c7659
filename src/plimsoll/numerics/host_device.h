// What lets the headers of this room run on the host and in a CUDA kernel with the same bits.
//
// nvcc needs -std=c++20 --expt-relaxed-constexpr. Neither side may flush subnormals to zero: scales
// reach down to 2^-127.
#pragma once

#ifdef __CUDACC__
#define PLIMSOLL_HD __host__ __device__
#else
#define PLIMSOLL_HD
#endif

namespace plimsoll {

// One float operation, rounded to nearest even. nvcc may neither fuse it with its neighbours nor
// replace it by an approximation; on the host -ffp-contract=off says the same.
PLIMSOLL_HD inline float add_rn(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

PLIMSOLL_HD inline float multiply_rn(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

PLIMSOLL_HD inline float divide_rn(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

}  // namespace plimsoll
