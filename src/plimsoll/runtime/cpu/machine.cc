#include "plimsoll/runtime/cpu/machine.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"

namespace plimsoll::cpu {

namespace {

namespace fs = std::filesystem;
using Capacity = runtime::Backend::Capacity;

// The value in bytes of a "Name:  123 kB" line; nothing when there is no such line.
std::optional<Bytes> kilobyte_line(std::istream&& in, const std::string& name) {
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

// The number a file begins with; nothing when it is absent, "max", or does not fit 64 bits.
std::optional<int64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// "name 123" in a memory.stat; 0 when there is no such line.
int64_t statistic(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string key;
  for (int64_t value = 0; in >> key >> value;) {
    if (key == name) return value;
  }
  return 0;
}

// A control group of this process and those above it, the nearest first.
std::vector<fs::path> with_ancestors(const fs::path& root, const std::string& group) {
  std::vector<fs::path> all;
  const fs::path relative = fs::path(group).relative_path();
  // Seen from inside a container the path may lead out of it ("/../../job"): what is mounted is
  // then the root of what can be read.
  const bool leads_out = std::find(relative.begin(), relative.end(), "..") != relative.end();
  for (fs::path folder = leads_out ? fs::path() : relative; !folder.empty();
       folder = folder.parent_path()) {
    all.push_back(root / folder);
  }
  all.push_back(root);
  return all;
}

// The groups that `controller` governs: of version 2 (one tree for all), or of version 1.
struct Groups {
  std::vector<fs::path> unified, legacy;
};
Groups groups_of(const SystemFiles& files, const std::string& controller) {
  Groups groups;
  std::ifstream in(files.proc / "self/cgroup");
  std::string line;
  while (std::getline(in, line)) {  // "0::/path", "4:cpu,cpuacct:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      groups.unified = with_ancestors(files.cgroup, path);
    } else if (controllers.find(fmt::format(",{},", controller)) != std::string::npos) {
      groups.legacy = with_ancestors(files.cgroup / controller, path);
    }
  }
  if (groups.unified.empty() && groups.legacy.empty()) {  // not told: what is mounted
    groups.unified = {files.cgroup};
    groups.legacy = {files.cgroup / controller};
  }
  return groups;
}

void lower(Capacity& capacity, int64_t left, const std::string& source) {
  left = std::max<int64_t>(0, left);
  if (left < capacity.bytes.count) capacity = {{left}, source};
}

// What the groups leave: limits minus use, without the pages of files that would be dropped first.
void apply_groups(Capacity& capacity, const SystemFiles& files) {
  const Groups groups = groups_of(files, "memory");
  const auto apply = [&](const fs::path& folder, const char* limit_file, const char* used_file,
                         const char* droppable) {
    const std::optional<int64_t> limit = number_in(folder / limit_file);
    if (!limit) return;
    const int64_t used = number_in(folder / used_file).value_or(0);
    const int64_t dropped = std::min(used, statistic(folder / "memory.stat", droppable));
    lower(capacity, *limit - (used - dropped),
          fmt::format("what the control group {} leaves", folder.string()));
  };
  for (const fs::path& folder : groups.unified) {
    apply(folder, "memory.max", "memory.current", "inactive_file");
    apply(folder, "memory.high", "memory.current", "inactive_file");
  }
  for (const fs::path& folder : groups.legacy) {
    apply(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
  }
}

// What the limits of the process leave.
void apply_process_limits(Capacity& capacity, const SystemFiles& files) {
  const auto apply = [&](auto resource, const char* used_line, const char* source) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const Bytes used =
        kilobyte_line(std::ifstream(files.proc / "self/status"), used_line).value_or(Bytes{});
    const auto most = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
    lower(capacity, most - used.count, source);
  };
  apply(RLIMIT_AS, "VmSize", "what ulimit -v leaves");
  apply(RLIMIT_DATA, "VmData", "what ulimit -d leaves");
}

// The cores' worth of time that the quotas of the groups allow; nothing when there is none.
std::optional<double> cpu_quota(const SystemFiles& files) {
  std::optional<double> least;
  const auto apply = [&](std::optional<int64_t> quota, std::optional<int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const double cores = static_cast<double>(*quota) / static_cast<double>(*period);
    least = std::min(least.value_or(cores), cores);
  };
  const Groups groups = groups_of(files, "cpu");
  for (const fs::path& folder : groups.unified) {  // "200000 100000", "max 100000"
    std::ifstream in(folder / "cpu.max");
    int64_t quota = 0, period = 0;
    if (in >> quota >> period) apply(quota, period);
  }
  for (const fs::path& folder : groups.legacy) {
    apply(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us"));
  }
  return least;
}

}  // namespace

int core_count(const SystemFiles& files) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int all = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const std::optional<double> quota = cpu_quota(files);
  if (!quota) return all;
  return std::clamp(static_cast<int>(std::ceil(std::min(*quota, 1e6))), 1, all);
}

Capacity available_memory(const SystemFiles& files) {
  // Read whole: where it cannot be (no descriptor is left), nothing available would be a wrong
  // answer.
  Capacity capacity = {
      kilobyte_line(std::istringstream(read_file(files.proc / "meminfo")), "MemAvailable")
          .value_or(Bytes{}),
      "MemAvailable"};
  apply_groups(capacity, files);
  apply_process_limits(capacity, files);
  return capacity;
}

Resident resident_memory() {
  return {kilobyte_line(std::ifstream("/proc/self/status"), "VmRSS").value_or(Bytes{}),
          kilobyte_line(std::ifstream("/proc/self/status"), "VmHWM").value_or(Bytes{})};
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
