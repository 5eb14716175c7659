// Limits are found wherever they are set: made-up trees of /proc and /sys/fs/cgroup.
#include "plimsoll/runtime/cpu/machine.h"

#include <gtest/gtest.h>

#include <fstream>

namespace plimsoll::cpu {
namespace {

namespace fs = std::filesystem;

constexpr int64_t gib = int64_t{1} << 30;

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("machine_") + test->name());
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 16777216 kB\nSwapFree: 9999999 kB\n");
    write("cgroup/empty", "");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void group(const std::string& text) { write("proc/self/cgroup", text); }
  SystemFiles files() const { return {root_ / "proc", root_ / "cgroup"}; }
  int64_t available() const { return available_memory(files()).bytes.count; }
  std::string source() const { return available_memory(files()).source; }

  fs::path root_;
};

TEST_F(Machine, WithoutLimitsHasWhatIsAvailable) {
  group("0::/user/job\n");
  write("cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(available(), 16 * gib);
  EXPECT_EQ(source(), "MemAvailable");
}

TEST_F(Machine, FindsTheTightestGroupAboveTheLeaf) {  // Slurm limits the job, not its step
  group("0::/slurm/job_1/step_0/task_0\n");
  write("cgroup/slurm/job_1/step_0/task_0/memory.max", "max\n");
  write("cgroup/slurm/job_1/step_0/memory.max", std::to_string(8 * gib) + "\n");
  write("cgroup/slurm/job_1/memory.max", std::to_string(4 * gib) + "\n");
  write("cgroup/slurm/job_1/memory.current", std::to_string(1 * gib) + "\n");
  EXPECT_EQ(available(), 3 * gib);
  EXPECT_NE(source().find("slurm/job_1 leaves"), std::string::npos) << source();
}

TEST_F(Machine, DoesNotCountPagesOfFilesAsUsed) {
  group("0::/job\n");
  write("cgroup/job/memory.max", std::to_string(4 * gib));
  write("cgroup/job/memory.current", std::to_string(3 * gib));
  write("cgroup/job/memory.stat",
        "anon 1\nfile " + std::to_string(2 * gib) + "\ninactive_file " + std::to_string(2 * gib));
  write("cgroup/job/memory.swap.max", std::to_string(64 * gib));
  EXPECT_EQ(available(), 3 * gib);
}

TEST_F(Machine, ReadsVersionOne) {
  group("9:memory:/slurm/uid_0/job_7\n4:cpu,cpuacct:/slurm\n");
  write("cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/slurm/uid_0/memory.limit_in_bytes", std::to_string(2 * gib));
  write("cgroup/memory/slurm/uid_0/memory.usage_in_bytes", std::to_string(gib));
  write("cgroup/memory/slurm/uid_0/memory.stat",
        "inactive_file 5\ntotal_inactive_file " + std::to_string(gib / 2) + "\n");
  EXPECT_EQ(available(), gib + gib / 2);
  write("cgroup/cpu/slurm/cpu.cfs_quota_us", "50000");
  write("cgroup/cpu/slurm/cpu.cfs_period_us", "100000");
  EXPECT_EQ(core_count(files()), 1);
}

TEST_F(Machine, InAContainerReadsWhatIsMounted) {
  group("0::/../../system.slice/container\n");
  write("cgroup/memory.max", std::to_string(gib));
  EXPECT_EQ(available(), gib);
}

TEST_F(Machine, IsNeverNegative) {
  group("0::/job\n");
  write("cgroup/job/memory.max", std::to_string(gib));
  write("cgroup/job/memory.current", std::to_string(2 * gib));
  EXPECT_EQ(available(), 0);
}

TEST_F(Machine, KeepsToTheQuotaOfTheCpu) {
  group("0::/a/b\n");
  const int all = core_count(files());
  write("cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(core_count(files()), all);
  write("cgroup/a/cpu.max", "10000 100000\n");
  EXPECT_EQ(core_count(files()), 1) << "a tenth of a core is one thread";
  write("cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(core_count(files()), std::min(all, 2));
}

}  // namespace
}  // namespace plimsoll::cpu
