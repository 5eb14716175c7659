// How much longer a step takes when another process keeps one core busy.
//
// Steps alone and steps with the neighbour take turns, so that other work on the machine hits both.
//
//   neighbour_bench [preset] [micro_batch] [sequence]
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "bench/planned_step.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"

using namespace plimsoll;

namespace {

// A process that computes and never sleeps, while this object lives.
class Neighbour {
 public:
  Neighbour() : process_(fork()) {
    if (process_ == 0) {
      for (volatile uint64_t i = 0;;) i = i + 1;
    }
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  config::Config config;
  config.model = model::preset(argc > 1 ? argv[1] : "gpt2-124m");
  config.step.precision = step::Precision::bf16;
  config.step.micro_batch = argc > 2 ? std::atoll(argv[2]) : 4;
  config.step.global_batch = config.step.micro_batch;
  config.step.sequence_length = argc > 3 ? std::atoll(argv[3]) : 64;
  config.step.head_chunk = 128;
  config.checkpoint.in_background = config::InBackground::no;
  const auto backend = cpu::make_cpu_backend(0);
  const bench::PlannedStep step(config::resolve(config), *backend);
  fmt::print("{}\n", backend->description());

  std::vector<double> alone, disturbed;
  step.timed_step();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) alone.push_back(step.timed_step());
    const Neighbour neighbour;
    for (int i = 0; i < 3; ++i) disturbed.push_back(step.timed_step());
  }
  const auto least = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  fmt::print("step alone: least {:.0f} ms, median {:.0f} ms\n", 1e3 * least(alone),
             1e3 * median(alone));
  fmt::print("with a busy neighbour: least {:.0f} ms, median {:.0f} ms: {:.2f} x (medians)\n",
             1e3 * least(disturbed), 1e3 * median(disturbed), median(disturbed) / median(alone));
}
