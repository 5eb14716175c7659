// tokens (T) i32, table (V, h), positions (S, h)  ->  x (T, h)
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/embedding.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
void embedding_of(const View& tokens, const View& table, const View& positions, int64_t sequence,
                  const View& x) {
  const int64_t hidden = x.columns;
  parallel_for(x.rows, [&, hidden](int64_t t) HWY_ATTR {
    const T* entry = table.as<T>() + int64_t{tokens.as<int32_t>()[t]} * hidden;
    T* x_row = x.as<T>() + t * hidden;
    if (!positions) {
      std::memcpy(x_row, entry, static_cast<size_t>(hidden) * sizeof(T));
      return;
    }
    const T* position = positions.as<T>() + t % sequence * hidden;
    for_columns(hidden, [=](int64_t c, auto lanes) HWY_ATTR {
      store(hn::Add(load(entry + c, lanes), load(position + c, lanes)), x_row + c, lanes);
    });
  });
}

void embedding(const View& tokens, const View& table, const View& positions, int64_t sequence,
               const View& x) {
  x.format == Format::bf16 ? embedding_of<bf16>(tokens, table, positions, sequence, x)
                           : embedding_of<float>(tokens, table, positions, sequence, x);
}

// A thread owns columns, not tokens: any token may add to any row of the table, and the order in
// which a row's tokens are added stays that of the batch.
template <class T>
void embedding_backward_of(const View& tokens, const View& dx, int64_t sequence, const View& dtable,
                           const View& dpositions) {
  const int64_t hidden = dx.columns;
  parallel_ranges(hidden, 16, [&, hidden](int64_t begin, int64_t end) HWY_ATTR {
    const auto add_row = [=](const T* from, float* to) HWY_ATTR {
      for_columns(end - begin, [=](int64_t c, auto lanes) HWY_ATTR {
        store(hn::Add(load(to + c, lanes), load(from + c, lanes)), to + c, lanes);
      });
    };
    for (int64_t t = 0; t < dx.rows; ++t) {
      const T* dx_row = dx.as<T>() + t * hidden + begin;
      add_row(dx_row, dtable.as<float>() + int64_t{tokens.as<int32_t>()[t]} * hidden + begin);
      if (dpositions) add_row(dx_row, dpositions.as<float>() + t % sequence * hidden + begin);
    }
  });
}

void embedding_backward(const View& tokens, const View& dx, int64_t sequence, const View& dtable,
                        const View& dpositions) {
  dx.format == Format::bf16
      ? embedding_backward_of<bf16>(tokens, dx, sequence, dtable, dpositions)
      : embedding_backward_of<float>(tokens, dx, sequence, dtable, dpositions);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(embedding);
HWY_EXPORT(embedding_backward);

void embedding(const View& tokens, const View& table, const View& positions, int64_t sequence,
               const View& x) {
  HWY_DYNAMIC_DISPATCH(embedding)(tokens, table, positions, sequence, x);
}

void embedding_backward(const View& tokens, const View& dx, int64_t sequence, const View& dtable,
                        const View& dpositions) {
  HWY_DYNAMIC_DISPATCH(embedding_backward)(tokens, dx, sequence, dtable, dpositions);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
