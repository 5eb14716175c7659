// Whole tensors from one number format to another.
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/convert.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class From, class To>
void convert(const View& from, const View& to) {
  parallel_ranges(from.elements(), 1024, [&](int64_t begin, int64_t end) HWY_ATTR {
    const From* from_range = from.as<From>() + begin;
    To* to_range = to.as<To>() + begin;
    for_columns(end - begin, [=](int64_t c, auto lanes) HWY_ATTR {
      store(load(from_range + c, lanes), to_range + c, lanes);
    });
  });
}

void to_f32(const View& from, const View& to) { convert<bf16, float>(from, to); }
void to_bf16(const View& from, const View& to) { convert<float, bf16>(from, to); }

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(to_f32);
HWY_EXPORT(to_bf16);

void to_f32(const View& from, const View& to) { HWY_DYNAMIC_DISPATCH(to_f32)(from, to); }
void to_bf16(const View& from, const View& to) { HWY_DYNAMIC_DISPATCH(to_bf16)(from, to); }

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
