// dy (tokens, columns)  ->  dbias (columns) f32 += the sum over tokens
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/bias_gradient.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
void bias_gradient_of(const View& dy, const View& dbias, float* partials) {
  const int64_t columns = dy.columns;
  const RowBlocks blocks(dy.rows);
  parallel_for(blocks.count(), [&, columns](int64_t block) HWY_ATTR {
    float* partial = partials + block * columns;
    std::fill_n(partial, columns, 0.0f);
    int64_t t = blocks.begin(block);
    // Four rows at a time: one pass over the partial sums for four over dy.
    for (; t + 4 <= blocks.end(block); t += 4) {
      const T* row = dy.as<T>() + t * columns;
      for_columns(columns, [=](int64_t c, auto lanes) HWY_ATTR {
        const VF ab = hn::Add(load(row + c, lanes), load(row + columns + c, lanes));
        const VF cd =
            hn::Add(load(row + 2 * columns + c, lanes), load(row + 3 * columns + c, lanes));
        store(hn::Add(load(partial + c, lanes), hn::Add(ab, cd)), partial + c, lanes);
      });
    }
    for (; t < blocks.end(block); ++t) {
      const T* row = dy.as<T>() + t * columns;
      for_columns(columns, [=](int64_t c, auto lanes) HWY_ATTR {
        store(hn::Add(load(partial + c, lanes), load(row + c, lanes)), partial + c, lanes);
      });
    }
  });
  add_block_sums(partials, blocks.count(), columns, columns, dbias.as<float>());
}

void bias_gradient(const View& dy, const View& dbias, Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  dy.format == Format::bf16 ? bias_gradient_of<bf16>(dy, dbias, partials)
                            : bias_gradient_of<float>(dy, dbias, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(bias_gradient);

size_t bias_gradient_workspace(int64_t tokens, int64_t columns) {
  return static_cast<size_t>(RowBlocks(tokens).count() * columns) * sizeof(float);
}

void bias_gradient(const View& dy, const View& dbias, Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(bias_gradient)(dy, dbias, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
