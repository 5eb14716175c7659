// qkv (tokens, qkv_columns), q_weight, k_weight (head_dim) f32
//   ->  qk (tokens, qk_columns), rstd (tokens, heads + query_groups) f32
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/qk_norm.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/rms_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
void qk_norm_of(const View& qkv, const View& q_weight, const View& k_weight, const HeadShape& shape,
                float eps, const View& qk, const View& rstd) {
  const int64_t normalised = shape.heads + shape.query_groups;
  parallel_for(qkv.rows, [&, normalised](int64_t t) HWY_ATTR {
    const T* from = qkv.as<T>() + t * qkv.columns;
    T* to = qk.as<T>() + t * qk.columns;
    float* row_rstd = rstd.as<float>() + t * normalised;
    for (int64_t head = 0; head < normalised; ++head) {
      const View& weight = head < shape.heads ? q_weight : k_weight;
      row_rstd[head] = rms_row(from + head * shape.head_dim, weight.as<float>(), shape.head_dim,
                               eps, to + head * shape.head_dim);
    }
  });
}

void qk_norm(const View& qkv, const View& q_weight, const View& k_weight, const HeadShape& shape,
             float eps, const View& qk, const View& rstd) {
  qkv.format == Format::bf16 ? qk_norm_of<bf16>(qkv, q_weight, k_weight, shape, eps, qk, rstd)
                             : qk_norm_of<float>(qkv, q_weight, k_weight, shape, eps, qk, rstd);
}

template <class T>
void qk_norm_backward_of(const View& dqkv, const View& qkv, const View& rstd, const View& q_weight,
                         const View& k_weight, const HeadShape& shape, const View& dq_weight,
                         const View& dk_weight, float* partials) {
  const int64_t normalised = shape.heads + shape.query_groups;
  const int64_t head_dim = shape.head_dim;
  const RowBlocks blocks(qkv.rows);
  parallel_for(blocks.count(), [&, normalised, head_dim](int64_t block) HWY_ATTR {
    float* partial = partials + block * 2 * head_dim;
    std::fill_n(partial, 2 * head_dim, 0.0f);
    for (int64_t t = blocks.begin(block); t < blocks.end(block); ++t) {
      for (int64_t head = 0; head < normalised; ++head) {
        const bool query = head < shape.heads;
        T* d = dqkv.as<T>() + t * dqkv.columns + head * head_dim;
        rms_row_backward<false>(d, qkv.as<T>() + t * qkv.columns + head * head_dim,
                                (query ? q_weight : k_weight).as<float>(),
                                rstd.as<float>()[t * normalised + head], head_dim, d,
                                query ? partial : partial + head_dim);
      }
    }
  });
  add_block_sums(partials, blocks.count(), 2 * head_dim, head_dim, dq_weight.as<float>());
  add_block_sums(partials + head_dim, blocks.count(), 2 * head_dim, head_dim,
                 dk_weight.as<float>());
}

void qk_norm_backward(const View& dqkv, const View& qkv, const View& rstd, const View& q_weight,
                      const View& k_weight, const HeadShape& shape, const View& dq_weight,
                      const View& dk_weight, Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  qkv.format == Format::bf16 ? qk_norm_backward_of<bf16>(dqkv, qkv, rstd, q_weight, k_weight, shape,
                                                         dq_weight, dk_weight, partials)
                             : qk_norm_backward_of<float>(dqkv, qkv, rstd, q_weight, k_weight,
                                                          shape, dq_weight, dk_weight, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(qk_norm);
HWY_EXPORT(qk_norm_backward);

void qk_norm(const View& qkv, const View& q_weight, const View& k_weight, const HeadShape& shape,
             float eps, const View& qk, const View& rstd) {
  HWY_DYNAMIC_DISPATCH(qk_norm)(qkv, q_weight, k_weight, shape, eps, qk, rstd);
}

size_t qk_norm_backward_workspace(int64_t tokens, const HeadShape& shape) {
  return static_cast<size_t>(RowBlocks(tokens).count() * 2 * shape.head_dim) * sizeof(float);
}

void qk_norm_backward(const View& dqkv, const View& qkv, const View& rstd, const View& q_weight,
                      const View& k_weight, const HeadShape& shape, const View& dq_weight,
                      const View& dk_weight, Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(qk_norm_backward)
  (dqkv, qkv, rstd, q_weight, k_weight, shape, dq_weight, dk_weight, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
