#include "plimsoll/cost/device_profile.h"

namespace plimsoll::cost {

DeviceProfile nominal_cpu() {
  DeviceProfile cpu = {.name = "nominal CPU",
                       .source = "fixed rates of two server cores, not measured",
                       .attention = 90e9,
                       .elementwise = 120e9,
                       .memory = 15e9};
  // Narrow formats are emulated by bf16 products, bf16 by f32 arithmetic where the CPU has no other.
  for (auto& rates : cpu.products) rates.fill(120e9);
  return cpu;
}

}  // namespace plimsoll::cost
