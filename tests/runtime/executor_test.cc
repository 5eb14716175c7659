// What the executor puts into queues: order between streams, and which ops of which micro-step.
#include "plimsoll/runtime/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/runtime/test_backend.h"

namespace plimsoll::runtime {
namespace {

// Writes down what enters which queue: "launch 0: cast", "record 0 e1", "wait 2 e1". Runs nothing.
class Recorder : public Backend {
 public:
  std::string description() const override { return "recorder"; }
  Bytes workspace(const step::Program&, const step::Op&) const override { return {}; }
  Launch prepare(const step::Op&, const Bindings&) const override {
    return [this, op = ops_++](Queue q) { log(fmt::format("op {} on {}", op, number(q))); };
  }
  Capacity capacity() const override { return {}; }
  Memory allocate(Bytes size) const override {
    return {new std::byte[static_cast<size_t>(size.count)], std::default_delete<std::byte[]>()};
  }
  bool shares_host_memory() const override { return true; }
  Queue queue(step::Stream stream) const override {
    return {reinterpret_cast<void*>(static_cast<uintptr_t>(stream))};
  }
  void copy_to_device(Queue, std::byte*, std::span<const std::byte>) const override {}
  void copy_to_host(Queue, std::span<std::byte>, const std::byte*) const override {}
  void copy(Queue, std::byte*, const std::byte*, Bytes) const override {}
  void fill(Queue, std::byte*, std::byte, Bytes) const override {}
  Event make_event() const override { return std::make_shared<int>(events_++); }
  void record(Queue q, const Event& e) const override {
    log(fmt::format("record {} on {}", *static_cast<int*>(e.get()), number(q)));
  }
  void wait(Queue q, const Event& e) const override {
    log(fmt::format("{} waits for {}", number(q), *static_cast<int*>(e.get())));
  }
  void synchronize(Queue) const override {}

  mutable std::vector<std::string> lines;

 private:
  static uintptr_t number(Queue q) { return reinterpret_cast<uintptr_t>(q.handle); }
  void log(std::string line) const { lines.push_back(std::move(line)); }
  mutable int ops_ = 0, events_ = 0;
};

// Casts of x to y, on the streams given.
step::Program casts(const std::vector<step::Op>& like) {
  step::Program program;
  const auto add = [&](const char* name, Format format) {
    return add_tensor(program, {.name = name, .type = {{8, 1}, format}, .persistent = true});
  };
  const step::TensorId x = add("x", Format::f32), y = add("y", Format::bf16);
  for (step::Op op : like) {
    op.kind = step::Cast{};
    op.inputs = {{x}};
    op.outputs = {{y}};
    program.ops.push_back(std::move(op));
  }
  return program;
}

using Lines = std::vector<std::string>;

TEST(Executor, OrdersStreamsByEventsAndMeetsAtTheEndsOfARun) {
  const step::Program program =
      casts({{.stream = step::Stream::compute},
             {.stream = step::Stream::copy, .after = {0}},
             {.phase = step::Phase::backward, .stream = step::Stream::compute, .after = {1}},
             {.stream = step::Stream::compute}});
  const step::MemoryPlan plan = plan_memory(program);
  const Recorder recorder;
  const Executor executor(program, plan, recorder);
  executor.run(0, 4);
  // Events 0 and 1 are those of ops 0 and 1, 2 to 4 those of the streams.
  const Lines whole = {"record 2 on 0", "1 waits for 2", "2 waits for 2", "op 0 on 0",
                       "record 0 on 0", "2 waits for 0", "op 1 on 2",     "record 1 on 2",
                       "0 waits for 1", "op 2 on 0",     "op 3 on 0",     "record 3 on 1",
                       "0 waits for 3", "record 4 on 2", "0 waits for 4"};
  EXPECT_EQ(recorder.lines, whole);
  // An op that is passed over orders what comes behind it all the same.
  recorder.lines.clear();
  executor.run(step::Phase::forward);
  Lines forward = whole;
  std::erase(forward, "op 2 on 0");
  EXPECT_EQ(recorder.lines, forward);
}

TEST(Executor, NeedsNoEventsForOneStream) {
  const step::Program program = casts({{}, {}});
  const step::MemoryPlan plan = plan_memory(program);
  const Recorder recorder;
  const Executor executor(program, plan, recorder);
  executor.run_micro_step();
  EXPECT_EQ(recorder.lines, (Lines{"op 0 on 0", "op 1 on 0"}));
}

TEST(Executor, RunsOpsOfTheFirstAndTheLastMicroStepThereOnly) {
  const step::Program program =
      casts({{.when = step::When::first}, {.when = step::When::every}, {.when = step::When::last}});
  const step::MemoryPlan plan = plan_memory(program);
  const Recorder recorder;
  const Executor executor(program, plan, recorder);
  const auto ops = [&](MicroStep now) {
    recorder.lines.clear();
    executor.run_micro_step(now);
    std::string text;
    for (const std::string& line : recorder.lines) text += line[3];
    return text;
  };
  EXPECT_EQ(ops({.first = true, .last = false}), "01");
  EXPECT_EQ(ops({.first = false, .last = false}), "1");
  EXPECT_EQ(ops({.first = false, .last = true}), "12");
  EXPECT_EQ(ops({.first = true, .last = true}), "012");
}

TEST(Executor, ReadsWhatItWroteAndRefusesWhatLiesOutside) {
  const step::Program program = casts({{}});
  const step::MemoryPlan plan = plan_memory(program);
  const GuardedBackend backend(cpu::make_cpu_backend(1));
  const Executor executor(program, plan, backend);
  executor.fill(0, std::byte{0});
  executor.write(0, std::array{1.0f, 2.0f}, 3);
  executor.run(0, 1);
  std::array<float, 8> values;
  executor.read(0, values);
  EXPECT_EQ(values, (std::array<float, 8>{0, 0, 0, 1, 2, 0, 0, 0}));
  std::array<bf16, 2> casted;
  executor.read(1, casted, 3);
  EXPECT_EQ(static_cast<float>(casted[1]), 2);
  EXPECT_THROW(executor.write(0, values, 1), Error);
  EXPECT_THROW(executor.read(1, values), Error);
  EXPECT_TRUE(executor.host_view(0).empty());
}

// The proof of the proof: a device that let the host in would show nothing.
TEST(GuardedBackendDeathTest, DiesWhereTheHostDereferencesItsMemory) {
  const GuardedBackend backend(cpu::make_cpu_backend(1));
  const Memory memory = backend.allocate({4096});
  EXPECT_EXIT(*static_cast<volatile std::byte*>(memory.get()) = std::byte{1},
              testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace plimsoll::runtime
