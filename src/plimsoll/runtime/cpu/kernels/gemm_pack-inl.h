// Packing of a block of a matrix into panels, the order in which the microkernel reads it.
//
// A block has a width (rows of a or columns of c) and a depth (along k). Panel p holds `W` lines of
// the width, f32, depth after depth: out[(p * depth + d) * W + w] = block(p * W + w, d), and 0
// where the width ends. bf16 becomes f32 on the way.

#include "hwy/cache_control.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_PACK_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_PACK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// 4 lines x 4 depths and 2 lines x 4 depths, transposed: out[d * W + w]; then W elements of a line.
#if HWY_TARGET == HWY_SCALAR

template <int64_t W, int64_t lines, class T>
HWY_INLINE void transpose(const T* from, int64_t stride, float* out) {
  for (int64_t d = 0; d < 4; ++d) {
    for (int64_t w = 0; w < lines; ++w) out[d * W + w] = static_cast<float>(from[w * stride + d]);
  }
}

template <int64_t W, class T>
HWY_INLINE void copy_line(const T* from, float* out) {
  for (int64_t w = 0; w < W; ++w) out[w] = static_cast<float>(from[w]);
}

#else

using F4 = hn::FixedTag<float, 4>;
using F2 = hn::FixedTag<float, 2>;

template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const bf16* from) {
  const hn::Rebind<uint32_t, D> du32;
  const hn::Rebind<uint16_t, D> du16;
  const auto bits = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du32, bits)));
}

template <int64_t W, class T>
HWY_INLINE void transpose_4(const T* from, int64_t stride, float* out) {
  const F4 d;
  const hn::Repartition<double, F4> pairs;
  const auto r0 = load_as(d, from);
  const auto r1 = load_as(d, from + stride);
  const auto r2 = load_as(d, from + 2 * stride);
  const auto r3 = load_as(d, from + 3 * stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + W);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * W);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * W);
}

template <int64_t W, class T>
HWY_INLINE void transpose_2(const T* from, int64_t stride, float* out) {
  const F4 d;
  const F2 half;
  const auto r0 = load_as(d, from);
  const auto r1 = load_as(d, from + stride);
  const auto low = hn::InterleaveLower(d, r0, r1);
  const auto high = hn::InterleaveUpper(d, r0, r1);
  hn::StoreU(hn::LowerHalf(half, low), half, out);
  hn::StoreU(hn::UpperHalf(half, low), half, out + W);
  hn::StoreU(hn::LowerHalf(half, high), half, out + 2 * W);
  hn::StoreU(hn::UpperHalf(half, high), half, out + 3 * W);
}

template <int64_t W, int64_t lines, class T>
HWY_INLINE void transpose(const T* from, int64_t stride, float* out) {
  if constexpr (lines == 4) {
    transpose_4<W>(from, stride, out);
  } else {
    transpose_2<W>(from, stride, out);
  }
}

template <int64_t W, class T>
HWY_INLINE void copy_line(const T* from, float* out) {
  constexpr int64_t kLanes = hn::MaxLanes(DF());
  int64_t w = 0;
  if constexpr (W % kLanes == 0) {
    for (; w < W; w += kLanes) hn::StoreU(load_as(DF(), from + w), DF(), out + w);
  } else {
    for (; w + 4 <= W; w += 4) hn::StoreU(load_as(F4(), from + w), F4(), out + w);
    for (; w < W; w += 2) hn::StoreU(load_as(F2(), from + w), F2(), out + w);
  }
}

#endif  // HWY_SCALAR

// Both orders fetch early what they read next: the hardware does not foresee the jumps.

// Block(w, d) = from[w * stride + d]: depth is contiguous.
template <int64_t W, class T>
HWY_INLINE void pack_along_depth(const T* from, int64_t stride, int64_t width, int64_t depth,
                                 float* out) {
  static_assert(W % 2 == 0);
  // A cache line of f32 from each of 4 lines at a time: with 16 lines at once, a stride that is a
  // multiple of 4 KiB would evict lines before they are used up.
  constexpr int64_t kChunk = 16;
  for (int64_t p = 0; p < width; p += W, from += W * stride, out += W * depth) {
    const int64_t lines = std::min(W, width - p);
    int64_t d0 = 0;
    if (lines == W) {
      for (; d0 + 4 <= depth; d0 += std::min(kChunk, (depth - d0) / 4 * 4)) {
        const int64_t d1 = std::min(d0 + kChunk, d0 + (depth - d0) / 4 * 4);
        for (int64_t w = 0; w < W; ++w) hwy::Prefetch(from + (W + w) * stride + d0);
        int64_t w = 0;
        for (; w + 4 <= W; w += 4) {
          for (int64_t d = d0; d < d1; d += 4) {
            transpose<W, 4>(from + w * stride + d, stride, out + d * W + w);
          }
        }
        for (; w < W; w += 2) {
          for (int64_t d = d0; d < d1; d += 4) {
            transpose<W, 2>(from + w * stride + d, stride, out + d * W + w);
          }
        }
      }
    }
    for (; d0 < depth; ++d0) {
      for (int64_t w = 0; w < W; ++w) {
        out[d0 * W + w] = w < lines ? static_cast<float>(from[w * stride + d0]) : 0.0f;
      }
    }
  }
}

// Block(w, d) = from[d * stride + w]: width is contiguous.
template <int64_t W, class T>
HWY_INLINE void pack_along_width(const T* from, int64_t stride, int64_t width, int64_t depth,
                                 float* out) {
  // Few rows at a time are read along their whole width, so that each page is visited once.
  constexpr int64_t kChunk = 8;
  for (int64_t d0 = 0; d0 < depth; d0 += kChunk) {
    const int64_t d1 = std::min(depth, d0 + kChunk);
    int64_t p = 0;
    for (; p + W <= width; p += W) {
      for (int64_t d = d0; d < d1; ++d) {
        hwy::Prefetch(from + (d + kChunk) * stride + p);
        copy_line<W>(from + d * stride + p, out + p * depth + d * W);
      }
    }
    if (p == width) continue;
    for (int64_t d = d0; d < d1; ++d) {
      for (int64_t w = 0; w < W; ++w) {
        out[p * depth + d * W + w] =
            p + w < width ? static_cast<float>(from[d * stride + p + w]) : 0.0f;
      }
    }
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
