#include "plimsoll/runtime/cpu/kernels/gemm_bf16_kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

// GCC 12 takes the undefined sources of its own unmasked intrinsics for uninitialised values.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace plimsoll::cpu {

namespace {

// --- packing -------------------------------------------------------------------------------------

inline __mmask16 first_16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : (1u << std::max<int64_t>(count, 0)) - 1);
}
inline __mmask32 first_32(int64_t count) {
  return count >= 32 ? 0xffffffffu : (1u << std::max<int64_t>(count, 0)) - 1;
}

// 16 x 16 elements of 32 bits, rows to columns.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Up to 16 lines of the width, which lie `stride` apart, 32 of k from each: lines of pairs of k.
inline void load_lines(const uint16_t* from, int64_t stride, int64_t lines, int64_t depth,
                       __m512i (&out)[16]) {
  const __mmask32 mask = first_32(depth);
  for (int64_t i = 0; i < 16; ++i) {
    out[i] = i < lines ? _mm512_maskz_loadu_epi16(mask, from + i * stride) : _mm512_setzero_si512();
  }
}

// 16 pairs of rows of k, which lie `stride` apart, up to 16 of the width from each.
inline void load_pairs(const uint16_t* from, int64_t stride, int64_t width, int64_t depth,
                       __m512i (&out)[16]) {
  const __mmask16 mask = first_16(width);
  for (int64_t p = 0; p < 16; ++p) {
    __m256i even = _mm256_setzero_si256(), odd = even;
    if (2 * p < depth) even = _mm256_maskz_loadu_epi16(mask, from + 2 * p * stride);
    if (2 * p + 1 < depth) odd = _mm256_maskz_loadu_epi16(mask, from + (2 * p + 1) * stride);
    out[p] = _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                             _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
  }
}

template <int64_t panel>
void pack_a(const GemmShape& s, const uint16_t* a, int64_t row, int64_t rows, int64_t k,
            int64_t depth, uint16_t* out) {
  for (int64_t p = 0; p < rows; p += panel) {
    for (int64_t d = 0; d < depth; d += kPanelDepth, out += panel * kPanelDepth) {
      if (s.product == step::Product::weight_gradient) {
        for (int64_t r = 0; r < panel; r += 16) {
          __m512i block[16];
          load_pairs(a + (k + d) * s.m + row + p + r, s.m, std::min(panel - r, rows - p - r),
                     depth - d, block);
          transpose(block);
          for (int64_t i = 0; i < std::min<int64_t>(16, panel - r); ++i) {
            _mm512_store_si512(out + (r + i) * kPanelDepth, block[i]);
          }
        }
      } else {
        const __mmask32 mask = first_32(depth - d);
        const uint16_t* from = a + (row + p) * s.k + k + d;
        for (int64_t r = 0; r < panel; ++r) {
          _mm512_store_si512(out + r * kPanelDepth,
                             p + r < rows ? _mm512_maskz_loadu_epi16(mask, from + r * s.k)
                                          : _mm512_setzero_si512());
        }
      }
    }
  }
}

void pack_b(const GemmShape& s, const uint16_t* b, int64_t column, int64_t columns, int64_t k,
            int64_t depth, uint16_t* out) {
  for (int64_t p = 0; p < columns; p += kPanelColumns) {
    for (int64_t d = 0; d < depth; d += kPanelDepth, out += kPanelColumns * kPanelDepth) {
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t at = p + 16 * half, width = columns - at;
        __m512i block[16];
        if (s.product == step::Product::forward) {
          load_lines(b + (column + at) * s.k + k + d, s.k, width, depth - d, block);
          transpose(block);
        } else {
          load_pairs(b + (k + d) * s.n + column + at, s.n, width, depth - d, block);
        }
        for (int64_t i = 0; i < 16; ++i) {
          _mm512_store_si512(out + (2 * i + half) * kPanelColumns, block[i]);
        }
      }
    }
  }
}

// --- results -------------------------------------------------------------------------------------

// One row of a tile: 32 sums, of which `columns` count.
inline void finish(__m512 sum, const Bf16Output& out, int64_t row, int64_t column, __mmask16 mask) {
  sum = _mm512_mul_ps(_mm512_set1_ps(out.alpha), sum);
  if (out.partial) {
    sum = _mm512_add_ps(
        _mm512_maskz_loadu_ps(mask, out.partial + row * out.partial_stride + column), sum);
  }
  if (out.bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, out.bias + column));
  if (out.f32) {
    _mm512_mask_storeu_ps(out.f32 + row * out.stride + column, mask, sum);
    return;
  }
  uint16_t* const to = out.bf16 + row * out.stride + column;
  if (out.accumulate) {
    const __m512i before = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, to));
    sum = _mm512_add_ps(_mm512_castsi512_ps(_mm512_slli_epi32(before, 16)), sum);
  }
  const __m256bh rounded = _mm512_cvtneps_pbh(sum);
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<const __m256i&>(rounded));
}

// --- AVX-512 BF16: 12 rows x 32 columns ----------------------------------------------------------

constexpr int64_t kRows = panel_rows(Bf16Kernel::avx512_bf16);

inline __m512bh bits(__m512i x) { return reinterpret_cast<const __m512bh&>(x); }

void multiply_avx512(const uint16_t* a, const uint16_t* b, int64_t rows, int64_t columns,
                     int64_t depth, const Bf16Output& out) {
  const int64_t padded = round_up(depth, kPanelDepth);
  for (int64_t j = 0; j < columns; j += kPanelColumns) {
    for (int64_t i = 0; i < rows; i += kRows) {
      const uint16_t* a_k = a + i * padded;
      const uint16_t* b_k = b + j * padded;
      __m512 sums[kRows][2];
#pragma GCC unroll 12
      for (int64_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
      for (int64_t d = 0; d < padded; d += kPanelDepth, a_k += kRows * kPanelDepth) {
        for (int64_t pair = 0; pair < kPanelDepth / 2; ++pair, b_k += 2 * kPanelColumns) {
          const __m512bh b0 = bits(_mm512_load_si512(b_k));
          const __m512bh b1 = bits(_mm512_load_si512(b_k + kPanelColumns));
#pragma GCC unroll 12
          for (int64_t r = 0; r < kRows; ++r) {
            int both;
            __builtin_memcpy(&both, a_k + r * kPanelDepth + 2 * pair, sizeof(both));
            const __m512bh a_r = bits(_mm512_set1_epi32(both));
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], a_r, b0);
            sums[r][1] = _mm512_dpbf16_ps(sums[r][1], a_r, b1);
          }
        }
      }
      const __mmask16 low = first_16(columns - j), high = first_16(columns - j - 16);
#pragma GCC unroll 12
      for (int64_t r = 0; r < kRows; ++r) {
        if (i + r >= rows) continue;
        finish(sums[r][0], out, i + r, j, low);
        if (high) finish(sums[r][1], out, i + r, j + 16, high);
      }
    }
  }
}

// --- AMX: 32 rows x 32 columns in four tiles -----------------------------------------------------

struct alignas(64) TileConfig {  // Intel SDM, LDTILECFG
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void begin_amx() {
  // Not on the stack: GCC 12's intrinsic says that it reads 8 bytes, and the others' stores go.
  static constexpr TileConfig config;
  _tile_loadconfig(&config);
}
void end_amx() { _tile_release(); }

// `rows` x `columns` sums at row i, column j of a product whose rows are columns of c.
void finish_turned(const float (&tile)[32][32], const Bf16Output& out, int64_t i, int64_t j,
                   int64_t rows, int64_t columns) {
  for (int64_t from = 0; from < columns; from += 16) {
    for (int64_t row = 0; row < rows; row += 16) {
      __m512i block[16];
      for (int64_t r = 0; r < 16; ++r) block[r] = _mm512_load_si512(&tile[row + r][from]);
      transpose(block);
      const __mmask16 mask = first_16(rows - row);
      for (int64_t c = 0; c < std::min<int64_t>(16, columns - from); ++c) {
        finish(_mm512_castsi512_ps(block[c]), out, j + from + c, i + row, mask);
      }
    }
  }
}

// Fetches the lines of c that a tile of 32 x 32 will read or write, while its product is made:
// where sums are added to what c holds they come from memory.
inline void prefetch(const Bf16Output& out, int64_t row, int64_t column, int64_t rows) {
  if (!out.f32) return;
  for (int64_t r = 0; r < rows; ++r) {
    const char* line = reinterpret_cast<const char*>(out.f32 + (row + r) * out.stride + column);
    _mm_prefetch(line, _MM_HINT_T0);
    _mm_prefetch(line + 64, _MM_HINT_T0);
  }
}

void multiply_amx(const uint16_t* a, const uint16_t* b, int64_t rows, int64_t columns,
                  int64_t depth, const Bf16Output& out) {
  constexpr int64_t panel = panel_rows(Bf16Kernel::amx);
  constexpr int64_t block = kPanelColumns * kPanelDepth;  // elements for 32 of k, of a and of b
  const int64_t padded = round_up(depth, kPanelDepth);
  alignas(64) float tile[panel][kPanelColumns];
  for (int64_t j = 0; j < columns; j += kPanelColumns) {
    const __mmask16 low = first_16(columns - j), high = first_16(columns - j - 16);
    for (int64_t i = 0; i < rows; i += panel) {
      const uint16_t* a_k = a + i * padded;
      const uint16_t* b_k = b + j * padded;
      if (out.turned) {
        prefetch(out, j, i, std::min(kPanelColumns, columns - j));
      } else {
        prefetch(out, i, j, std::min(panel, rows - i));
      }
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      for (int64_t d = 0; d < padded; d += kPanelDepth, a_k += block, b_k += block) {
        _tile_loadd(6, b_k, 128);
        _tile_loadd(4, a_k, 64);
        _tile_loadd(7, b_k + kPanelColumns, 128);
        _tile_loadd(5, a_k + block / 2, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      constexpr int64_t stride = kPanelColumns * sizeof(float);
      _tile_stored(0, &tile[0][0], stride);
      _tile_stored(1, &tile[0][16], stride);
      _tile_stored(2, &tile[16][0], stride);
      _tile_stored(3, &tile[16][16], stride);
      if (out.turned) {
        finish_turned(tile, out, i, j, std::min(panel, rows - i),
                      std::min(kPanelColumns, columns - j));
        continue;
      }
      for (int64_t r = 0; r < std::min(panel, rows - i); ++r) {
        finish(_mm512_load_ps(&tile[r][0]), out, i + r, j, low);
        if (high) finish(_mm512_load_ps(&tile[r][16]), out, i + r, j + 16, high);
      }
    }
  }
}

// --- what the CPU has ----------------------------------------------------------------------------

bool has_avx512_bf16() {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

// The system gives a process the tiles' state on request only.
bool has_amx() {
  unsigned a, b, c, d;
  if (!has_avx512_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!(d >> 22 & 1) || !(d >> 24 & 1)) return false;          // AMX-BF16, AMX-TILE
  constexpr long request_permission = 0x1023, tile_data = 18;  // Linux, arch/x86 xstate
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

void nothing() {}

}  // namespace

const Bf16Functions* avx512_bf16_functions() {
  static const Bf16Functions functions = {kRows,         nothing, nothing,
                                          pack_a<kRows>, pack_b,  multiply_avx512};
  static const bool here = has_avx512_bf16();
  return here ? &functions : nullptr;
}

const Bf16Functions* amx_functions() {
  static const Bf16Functions functions = {
      panel_rows(Bf16Kernel::amx),         begin_amx, end_amx,
      pack_a<panel_rows(Bf16Kernel::amx)>, pack_b,    multiply_amx};
  static const bool here = has_amx();
  return here ? &functions : nullptr;
}

}  // namespace plimsoll::cpu

HWY_POP_ATTRIBUTES

#else

namespace plimsoll::cpu {

const Bf16Functions* avx512_bf16_functions() { return nullptr; }
const Bf16Functions* amx_functions() { return nullptr; }

}  // namespace plimsoll::cpu

#endif
