// One op of the CPU on its operands, run by the calling thread and the pool's (threads.h). Never allocates.
#pragma once

#include <functional>

namespace plimsoll::cpu {

using Work = std::function<void()>;

}  // namespace plimsoll::cpu
