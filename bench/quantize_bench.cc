// What quantising and dequantising cost an element, on one thread, for a matrix of 1024 x 3072.
//
// ns_per_element is the time over elements, for both
// directions over twice the elements, so that rows, columns and both compare.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plimsoll/runtime/cpu/kernels/quantize.h"
#include "plimsoll/runtime/cpu/threads.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t bench_rows = 1024, bench_columns = 3072;

// A quantised matrix with its memory.
struct Storage {
  Storage(const Quantization& q, int64_t rows, int64_t columns)
      : padded(padded_columns(q.scaling, columns)),
        codes(static_cast<size_t>(bytes_of(q.format, rows * padded))),
        scales(static_cast<size_t>(4 * rows * padded / block_columns(q.scaling))),
        view{{codes.data(), q.format, rows, padded}, {}, {}} {
    if (has_block_scales(q.scaling)) {
      view.scales = {scales.data(), scale_format(q.scaling), scale_rows(q.scaling, rows),
                     padded / block_columns(q.scaling)};
    }
    if (has_tensor_scale(q.scaling)) {
      view.tensor_scale = {reinterpret_cast<std::byte*>(tensor_scale), Format::f32, 1, 2};
    }
  }
  Storage(const Storage&) = delete;
  int64_t padded;
  std::vector<std::byte> codes, scales;
  float tensor_scale[2] = {};
  QuantizedView view;
};

std::vector<bf16> random_values() {
  std::minstd_rand random(1);
  std::normal_distribution<float> normal;
  std::vector<bf16> x(bench_rows * bench_columns);
  for (bf16& value : x) value = bf16(normal(random));
  return x;
}

void set_time_per_element(benchmark::State& state, int64_t elements) {
  state.counters["ns_per_element"] = benchmark::Counter(
      1e-9 * static_cast<double>(elements) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

enum class Directions { rows = 1, columns = 2, both = 3 };

void run_quantize(benchmark::State& state, const Quantization& rows, const Quantization& columns,
                  Directions directions) {
  set_thread_count(1);
  const std::vector<bf16> x = random_values();
  const Storage to_rows(rows, bench_rows, bench_columns);
  const Storage to_columns(columns, bench_columns, bench_rows);
  step::Quantize kind;
  kind.has_rows = directions != Directions::columns;
  kind.has_columns = directions != Directions::rows;
  kind.rows = rows;
  kind.columns = columns;
  const View view{reinterpret_cast<std::byte*>(const_cast<bf16*>(x.data())), Format::bf16,
                  bench_rows, bench_columns};
  std::vector<float> history(17);
  std::vector<std::byte> workspace(quantize_workspace(kind, bench_rows, bench_columns));
  QuantizerStatistics statistics;
  for ([[maybe_unused]] auto unused : state) {
    quantize(kind, view, QuantizerControl(), history, statistics,
             kind.has_rows ? to_rows.view : QuantizedView{},
             kind.has_columns ? to_columns.view : QuantizedView{}, workspace);
  }
  set_time_per_element(state, std::ssize(x) * (kind.has_rows + kind.has_columns));
}

void run_dequantize(benchmark::State& state, const Quantization& q) {
  set_thread_count(1);
  const Storage from(q, bench_rows, bench_columns);
  std::minstd_rand random(1);
  for (std::byte& b : from.view.codes.bytes()) b = static_cast<std::byte>(random() % 120);
  if (from.view.scales.format == Format::f32) {
    std::ranges::fill(from.view.scales.span<float>(), 0.5f);
  } else {
    std::ranges::fill(from.view.scales.bytes(), static_cast<std::byte>(0x3f));
  }
  std::vector<float> to(bench_rows * bench_columns);
  const View view{reinterpret_cast<std::byte*>(to.data()), product_format(q.format), bench_rows,
                  from.padded};
  for ([[maybe_unused]] auto unused : state) dequantize(q, from.view, view);
  set_time_per_element(state, bench_rows * bench_columns);
}

Quantization with(Scaling scaling, Format format, bool stochastic = false, bool hadamard = false) {
  Quantization q;
  q.scaling = scaling;
  q.format = format;
  q.stochastic = stochastic;
  q.hadamard = hadamard;
  return q;
}

void register_all() {
  struct Case {
    const char* name;
    Quantization rows, columns;
  };
  const Quantization nvfp4 = with(Scaling::nvfp4_1x16, Format::e2m1);
  const Quantization tiles = with(Scaling::nvfp4_16x16, Format::e2m1);
  const auto same = [](const char* name, const Quantization& q) { return Case{name, q, q}; };
  const Case cases[] = {
      same("loss_f16", with(Scaling::loss, Format::f16)),
      same("current_e4m3", with(Scaling::current, Format::e4m3)),
      same("delayed_e5m2", with(Scaling::delayed, Format::e5m2)),
      same("block_1x128", with(Scaling::block_1x128, Format::e4m3)),
      same("block_128x128", with(Scaling::block_128x128, Format::e4m3)),
      same("mx", with(Scaling::mx, Format::e4m3)),
      same("nvfp4_weight", tiles),
      {"nvfp4_input", nvfp4, with(Scaling::nvfp4_1x16, Format::e2m1, false, true)},
      {"nvfp4_gradient", with(Scaling::nvfp4_1x16, Format::e2m1, true),
       with(Scaling::nvfp4_1x16, Format::e2m1, true, true)},
  };
  for (const Case& c : cases) {
    for (const auto& [name, directions] : {std::pair{"rows", Directions::rows},
                                           {"columns", Directions::columns},
                                           {"both", Directions::both}}) {
      benchmark::RegisterBenchmark(fmt::format("quantize/{}/{}", c.name, name).c_str(),
                                   run_quantize, c.rows, c.columns, directions);
    }
    if (c.rows == c.columns) {
      benchmark::RegisterBenchmark(fmt::format("dequantize/{}", c.name).c_str(), run_dequantize,
                                   c.rows);
    }
  }
}

}  // namespace
}  // namespace plimsoll::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  plimsoll::cpu::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
