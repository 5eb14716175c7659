// What this machine has, as far as this process may use it: cores, memory, and the memory used.
#pragma once

#include <filesystem>
#include <string>

#include "plimsoll/runtime/backend.h"

namespace plimsoll::cpu {

// Where the system tells about itself; tests give trees of their own.
struct SystemFiles {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

// Threads a run uses when it is not said: the cores this process may run on, or what the CPU quota
// of a control group above it allows (cpu.max, cpu.cfs_quota_us), rounded up.
int core_count(const SystemFiles& = {});

// The smallest of MemAvailable, what every control group above this process leaves (version 2:
// memory.max; version 1: memory.limit_in_bytes; a container, a Slurm job, whichever is tightest),
// and the limits of the process (ulimit -v, -d). Pages of files that a group can drop are not in
// use. Swap is not memory.
runtime::Backend::Capacity available_memory(const SystemFiles& = {});

// Resident bytes now, and the most there have been (VmRSS, VmHWM).
struct Resident {
  Bytes now;
  Bytes peak;
};
Resident resident_memory();

// The processor's name as the system gives it.
std::string processor_name();

}  // namespace plimsoll::cpu
