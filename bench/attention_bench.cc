// Causal attention forward and backward: FLOP/s, and the FLOPs per second of CPU time as a share of
// those of multiply-adds with all operands in registers, measured in the same run. CPU time, so
// that other programs on the machine do not count.
//
// FLOPs are those of the products below the diagonal, s (s + 1) / 2 scores a head: 4 head_dim each
// forward, 10 head_dim backward. The arguments are sequence, head_dim, threads and format.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../bench/attention_bench.cc"  // from src, the include directory
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains of `steps` multiply-adds; returns the FLOPs done.
double multiply_add(int64_t steps, float* sink) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  // Different starts, or the compiler would merge the chains.
  auto x0 = hn::Iota(d, 0), x1 = hn::Iota(d, 1), x2 = hn::Iota(d, 2), x3 = hn::Iota(d, 3);
  auto x4 = hn::Iota(d, 4), x5 = hn::Iota(d, 5), x6 = hn::Iota(d, 6), x7 = hn::Iota(d, 7);
  auto x8 = hn::Iota(d, 8), x9 = hn::Iota(d, 9), x10 = hn::Iota(d, 10), x11 = hn::Iota(d, 11);
  for (int64_t i = 0; i < steps; ++i) {
    x0 = hn::MulAdd(x0, a, b), x1 = hn::MulAdd(x1, a, b), x2 = hn::MulAdd(x2, a, b);
    x3 = hn::MulAdd(x3, a, b), x4 = hn::MulAdd(x4, a, b), x5 = hn::MulAdd(x5, a, b);
    x6 = hn::MulAdd(x6, a, b), x7 = hn::MulAdd(x7, a, b), x8 = hn::MulAdd(x8, a, b);
    x9 = hn::MulAdd(x9, a, b), x10 = hn::MulAdd(x10, a, b), x11 = hn::MulAdd(x11, a, b);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)),
                           hn::Add(hn::Add(hn::Add(x4, x5), hn::Add(x6, x7)),
                                   hn::Add(hn::Add(x8, x9), hn::Add(x10, x11))));
  *sink = hn::GetLane(sum);
  return 24.0 * static_cast<double>(steps) * static_cast<double>(hn::Lanes(d));
}

}  // namespace plimsoll::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll {

HWY_EXPORT(multiply_add);

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// FLOPs of one thread per second of CPU time: the best of a few tries.
double peak_rate() {
  double best = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    float sink = 0;
    const double start = cpu_seconds();
    const double flops = HWY_DYNAMIC_DISPATCH(multiply_add)(2'000'000, &sink);
    best = std::max(best, flops / (cpu_seconds() - start));
    benchmark::DoNotOptimize(sink);
  }
  return best;
}

struct Buffer {
  Buffer(Format format, int64_t rows, int64_t columns)
      : bytes(rows * columns * bytes_per_element(format)),
        view{bytes.data(), format, rows, columns} {
    for (int64_t i = 0; i < view.elements(); ++i) {
      const float value = std::sin(static_cast<float>(i));
      if (format == Format::bf16) {
        view.as<bf16>()[i] = bf16(value);
      } else {
        view.as<float>()[i] = value;
      }
    }
  }
  std::vector<std::byte> bytes;
  View view;
};

struct Workspace {
  explicit Workspace(size_t size) : bytes(size + 64) {
    const size_t skip = (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    span = {bytes.data() + skip, size};
  }
  std::vector<std::byte> bytes;
  cpu::Workspace span;
};

void attention(benchmark::State& state, bool backward) {
  const int64_t sequence = state.range(0), head_dim = state.range(1);
  const int threads = static_cast<int>(state.range(2));
  const auto format = static_cast<Format>(state.range(3));
  const step::HeadShape shape{4, 4, head_dim, sequence};
  Buffer qkv(format, sequence, shape.qkv_columns()), dqkv(format, sequence, shape.qkv_columns());
  Buffer out(format, sequence, 4 * head_dim), dout(format, sequence, 4 * head_dim);
  Buffer lse(Format::f32, sequence, 4);
  Workspace workspace(cpu::attention_workspace(shape, threads));
  Workspace backward_workspace(cpu::attention_backward_workspace(sequence, shape, threads));
  const auto run_forward = [&] {
    cpu::attention(qkv.view, qkv.view, shape, out.view, lse.view, workspace.span, threads);
  };
  run_forward();
  const double start = cpu_seconds();
  for (auto _ : state) {
    if (backward) {
      cpu::attention_backward(dout.view, out.view, qkv.view, qkv.view, lse.view, shape, dqkv.view,
                              backward_workspace.span, threads);
    } else {
      run_forward();
    }
  }
  const double seconds = cpu_seconds() - start;
  const double scores = 4.0 * static_cast<double>(sequence) * static_cast<double>(sequence + 1) / 2;
  const double flops = scores * static_cast<double>(head_dim) * (backward ? 10 : 4) *
                       static_cast<double>(state.iterations());
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = flops / seconds / peak_rate();
}

void shapes(benchmark::internal::Benchmark* b) {
  const auto f32 = static_cast<int64_t>(Format::f32), half = static_cast<int64_t>(Format::bf16);
  b->ArgNames({"sequence", "head_dim", "threads", "format"})->UseRealTime();
  b->Unit(benchmark::kMillisecond);
  b->Args({1024, 64, 1, f32})->Args({1024, 64, 1, half})->Args({1024, 64, 2, half});
  b->Args({256, 32, 1, half})->Args({1024, 128, 1, half})->Args({8192, 64, 2, half});
}

BENCHMARK_CAPTURE(attention, forward, false)->Apply(shapes);
BENCHMARK_CAPTURE(attention, backward, true)->Apply(shapes);

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
#endif  // HWY_ONCE
