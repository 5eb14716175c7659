// What this machine has: cores, memory, and the memory this process has used.
#pragma once

#include "plimsoll/runtime/backend.h"

namespace plimsoll::cpu {

// Cores this process may run on.
int core_count();

// The smaller of MemAvailable and what the control group (a container, a Slurm job) leaves.
runtime::Backend::Capacity available_memory();

// Resident bytes now, and the most there have been (VmRSS, VmHWM).
struct Resident {
  Bytes now;
  Bytes peak;
};
Resident resident_memory();

// The processor's name as the system gives it.
std::string processor_name();

}  // namespace plimsoll::cpu
