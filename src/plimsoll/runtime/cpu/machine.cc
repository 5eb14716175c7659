#include "plimsoll/runtime/cpu/machine.h"

#include <sched.h>

#include <fstream>
#include <optional>
#include <sstream>

namespace plimsoll::cpu {

namespace {

// The value in bytes of a "Name:  123 kB" line; nothing when there is no such line.
std::optional<Bytes> kilobyte_line(const char* file, const std::string& name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(name + ":")) {
      std::istringstream value(line.substr(name.size() + 1));
      int64_t kilobytes = 0;
      if (value >> kilobytes) return Bytes{kilobytes * 1024};
    }
  }
  return std::nullopt;
}

// A control group's file that holds one number; nothing when it is absent or says "max".
std::optional<Bytes> cgroup_number(const std::string& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (in >> value) return Bytes{value};
  return std::nullopt;
}

// The folder of this process's control group (version 2).
std::string cgroup_folder() {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "/sys/fs/cgroup";
}

}  // namespace

int core_count() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

runtime::Backend::Capacity available_memory() {
  const Bytes available = kilobyte_line("/proc/meminfo", "MemAvailable").value_or(Bytes{});
  const std::string folder = cgroup_folder();
  const auto limit = cgroup_number(folder + "/memory.max");
  if (limit) {
    const Bytes used = cgroup_number(folder + "/memory.current").value_or(Bytes{});
    const Bytes left = *limit - used;
    if (left < available) return {left, "what the control group leaves"};
  }
  return {available, "MemAvailable"};
}

Resident resident_memory() {
  return {kilobyte_line("/proc/self/status", "VmRSS").value_or(Bytes{}),
          kilobyte_line("/proc/self/status", "VmHWM").value_or(Bytes{})};
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace plimsoll::cpu
