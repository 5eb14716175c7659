#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

// Any bits at all: NaN, infinities, subnormals, ties.
RC_GTEST_PROP(ToBf16, HasTheBitsOfTheScalarConversion, ()) {
  const int64_t elements = Draw::size(1, 3000);
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  const Tensor from(Format::f32, 1, elements);
  for (float& value : from.view().span<float>()) {
    const uint32_t ties = random() % 2 == 0 ? 0xffff8000u : 0xffffffffu;
    const uint32_t special = random() % 8 == 0 ? 0x7f800000u : 0;
    value = std::bit_cast<float>((static_cast<uint32_t>(random()) & ties) | special);
  }
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::bf16, 1, elements}};
    to_bf16(from.view(), out[0].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    for (int64_t i = 0; i < elements; ++i) {
      const float value = from.view().as<float>()[i];
      const uint16_t actual = out[0].view().as<bf16>()[i].bits, expected = bf16(value).bits;
      if (actual != expected) {
        RC_FAIL(fmt::format("element {}: {:#010x} became {:#06x}, not {:#06x}", i,
                            std::bit_cast<uint32_t>(value), actual, expected));
      }
    }
  });
}

TEST(ToF32, HasTheBitsOfTheScalarConversion) {
  constexpr int64_t every_bf16 = 1 << 16;
  const Tensor from(Format::bf16, 1, every_bf16), to(Format::f32, 1, every_bf16);
  for (int64_t i = 0; i < every_bf16; ++i) {
    from.view().as<bf16>()[i].bits = static_cast<uint16_t>(i);
  }
  to_f32(from.view(), to.view());
  for (int64_t i = 0; i < every_bf16; ++i) {
    const auto actual = std::bit_cast<uint32_t>(to.view().as<float>()[i]);
    ASSERT_EQ(actual, static_cast<uint32_t>(i) << 16) << "bf16 bits " << i;
  }
}

}  // namespace
}  // namespace plimsoll::cpu
