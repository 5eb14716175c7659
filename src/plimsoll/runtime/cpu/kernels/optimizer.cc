// The global gradient norm, clipping and AdamW, over weights as flat arrays of f32; AdamW's moments
// are f32 or bf16, rounded to nearest when they are stored.
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/optimizer.cc"
#include "hwy/foreach_target.h"

#include <cmath>

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// Squares of f32 are exact in double, and none of them over- or underflows.
double block_squares(const float* from, int64_t elements) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
  auto s0 = hn::Zero(dd), s1 = s0, s2 = s0, s3 = s0;
  const auto square_of = [=](int64_t i) HWY_ATTR {
    const auto v = hn::PromoteTo(dd, hn::LoadU(df, from + i));
    return hn::Mul(v, v);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    s0 = hn::Add(s0, square_of(i));
    s1 = hn::Add(s1, square_of(i + lanes));
    s2 = hn::Add(s2, square_of(i + 2 * lanes));
    s3 = hn::Add(s3, square_of(i + 3 * lanes));
  }
  double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < elements; ++i) sum += static_cast<double>(from[i]) * from[i];
  return sum;
}

template <class Moment, bool copies>
void adam_w_of(const View& weight, const View& grad, const View& m, const View& v,
               const View& settings, const View& clip, const AdamWSettings& adam,
               const View& copy) {
  const float* given = settings.as<float>();
  const float lr = given[0], c1 = given[1], c2 = given[2];
  const float factor = clip.as<float>()[1];
  const float decay = lr * adam.weight_decay;
  parallel_ranges(weight.elements(), 1024, [&](int64_t begin, int64_t end) HWY_ATTR {
    float* w_range = weight.as<float>() + begin;
    float* g_range = grad.as<float>() + begin;
    Moment* m_range = m.as<Moment>() + begin;
    Moment* v_range = v.as<Moment>() + begin;
    bf16* copy_range = copies ? copy.as<bf16>() + begin : nullptr;
    const AdamWSettings a = adam;
    for_columns(end - begin, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF g = hn::Mul(load(g_range + c, lanes), set(factor));
      const VF first =
          hn::MulAdd(set(a.beta1), load(m_range + c, lanes), hn::Mul(set(1 - a.beta1), g));
      const VF second = hn::MulAdd(set(a.beta2), load(v_range + c, lanes),
                                   hn::Mul(hn::Mul(set(1 - a.beta2), g), g));
      const VF root = hn::Sqrt(hn::Mul(second, set(1 / c2)));
      const VF step = hn::Div(hn::Mul(first, set(lr / c1)), hn::Add(root, set(a.eps)));
      // Decay and step together, so that the weight is rounded once.
      const VF old = load(w_range + c, lanes);
      const VF w = hn::Sub(old, hn::MulAdd(old, set(decay), step));
      store(w, w_range + c, lanes);
      store(first, m_range + c, lanes);
      store(second, v_range + c, lanes);
      store(hn::Zero(DF()), g_range + c, lanes);
      if constexpr (copies) store(w, copy_range + c, lanes);
    });
  });
}

template <class Moment>
void adam_w_with(const View& weight, const View& grad, const View& m, const View& v,
                 const View& settings, const View& clip, const AdamWSettings& adam,
                 const View& copy) {
  copy ? adam_w_of<Moment, true>(weight, grad, m, v, settings, clip, adam, copy)
       : adam_w_of<Moment, false>(weight, grad, m, v, settings, clip, adam, copy);
}

void adam_w(const View& weight, const View& grad, const View& m, const View& v,
            const View& settings, const View& clip, const AdamWSettings& adam, const View& copy) {
  m.format == Format::bf16 ? adam_w_with<bf16>(weight, grad, m, v, settings, clip, adam, copy)
                           : adam_w_with<float>(weight, grad, m, v, settings, clip, adam, copy);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(block_squares);
HWY_EXPORT(adam_w);

namespace {
constexpr int64_t squared_norm_block = 1 << 16;
int64_t squared_norm_blocks(int64_t elements) {
  return (elements + squared_norm_block - 1) / squared_norm_block;
}
}  // namespace

size_t squared_norm_workspace(int64_t elements) {
  return static_cast<size_t>(squared_norm_blocks(elements)) * sizeof(double);
}

void squared_norm(const View& grad, const View& squares, int64_t slot, Workspace workspace) {
  auto* partials = reinterpret_cast<double*>(workspace.data());
  const int64_t blocks = squared_norm_blocks(grad.elements());
  const auto sum_block = HWY_DYNAMIC_DISPATCH(block_squares);
  parallel_for(blocks, [=, &grad](int64_t block) {
    const int64_t begin = block * squared_norm_block;
    partials[block] =
        sum_block(grad.as<float>() + begin, std::min(squared_norm_block, grad.elements() - begin));
  });
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += partials[block];
  squares.as<float>()[slot] = static_cast<float>(sum);
}

void clip_factor(const View& squares, float max_norm, const View& clip) {
  double sum = 0;
  for (const float square : squares.span<float>()) sum += square;
  const double norm = std::sqrt(sum);
  clip.as<float>()[0] = static_cast<float>(norm);
  clip.as<float>()[1] = max_norm > 0 && norm > max_norm ? static_cast<float>(max_norm / norm) : 1;
}

void adam_w(const View& weight, const View& grad, const View& m, const View& v,
            const View& settings, const View& clip, const AdamWSettings& adam, const View& copy) {
  HWY_DYNAMIC_DISPATCH(adam_w)(weight, grad, m, v, settings, clip, adam, copy);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
