// One op of the CPU on its operands, run by the calling thread and OpenMP's. Never allocates.
#pragma once

#include <functional>

namespace plimsoll::cpu {

using Work = std::function<void()>;

}  // namespace plimsoll::cpu
