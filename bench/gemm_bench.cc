// The portable matrix product against oneDNN's f32 matmul, on the shapes of GPT-2 124M.
//
// Both run in this process, turn by turn, so that a slow moment hits both. Ratios are oneDNN's time
// over ours: above 1, ours is faster. With one thread, CPU time is measured, which other programs
// on the machine disturb less than time on the clock.
//   gemm_bench [threads [seconds a shape]]
#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/gemm.h"

namespace plimsoll::cpu {
namespace {

using step::Product;

template <class T>
struct Buffer {
  explicit Buffer(int64_t elements)
      : data(static_cast<T*>(
            std::aligned_alloc(64, (static_cast<size_t>(elements) * sizeof(T) + 63) / 64 * 64))) {}
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  View view(Format format, int64_t rows, int64_t columns) const {
    return {reinterpret_cast<std::byte*>(data), format, rows, columns};
  }
  T* data;
};

// oneDNN's f32 matmul, c += where accumulate.
class OneDnn {
 public:
  OneDnn(const GemmShape& s, float* a, float* b, float* c) : engine_(dnnl::engine::kind::cpu, 0) {
    using dnnl::memory;
    using Tag = memory::format_tag;
    const bool a_transposed = s.product == Product::weight_gradient;
    const bool b_transposed = s.product == Product::forward;
    const auto f32 = memory::data_type::f32;
    const memory::desc a_desc({s.m, s.k}, f32, a_transposed ? Tag::ba : Tag::ab);
    const memory::desc b_desc({s.k, s.n}, f32, b_transposed ? Tag::ba : Tag::ab);
    const memory::desc c_desc({s.m, s.n}, f32, Tag::ab);
    dnnl::primitive_attr attributes;
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::desc desc(a_desc, b_desc, c_desc);
    matmul_ = dnnl::matmul({desc, attributes, engine_});
    stream_ = dnnl::stream(engine_);
    arguments_ = {{DNNL_ARG_SRC, memory(a_desc, engine_, a)},
                  {DNNL_ARG_WEIGHTS, memory(b_desc, engine_, b)},
                  {DNNL_ARG_DST, memory(c_desc, engine_, c)}};
  }
  void run() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void sgemm(const GemmShape& s, const float* a, const float* b, float* c) {
  const bool a_transposed = s.product == Product::weight_gradient;
  const bool b_transposed = s.product == Product::forward;
  dnnl_sgemm(a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a,
             a_transposed ? s.m : s.k, b, b_transposed ? s.k : s.n, s.accumulate ? 1.0f : 0.0f, c,
             s.n);
}

double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Times {
 public:
  explicit Times(int threads) : threads_(threads) {}
  template <class Run>
  void add(const Run& run) {
    const double begin = now(threads_);
    run();
    seconds_.push_back(now(threads_) - begin);
  }
  double total() const {
    double sum = 0;
    for (const double s : seconds_) sum += s;
    return sum;
  }
  size_t count() const { return seconds_.size(); }
  double least() const { return *std::min_element(seconds_.begin(), seconds_.end()); }
  double median() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  int threads_;
  std::vector<double> seconds_;
};

std::string_view name(Product product) {
  switch (product) {
    case Product::forward:
      return "forward";
    case Product::input_gradient:
      return "input gradient";
    case Product::weight_gradient:
      return "weight gradient";
  }
  return "?";
}

// The product of a linear layer with `in` inputs and `out` outputs.
GemmShape shape_of(Product product, int64_t tokens, int64_t in, int64_t out) {
  switch (product) {
    case Product::forward:
      return {product, tokens, out, in};
    case Product::input_gradient:
      return {product, tokens, in, out};
    case Product::weight_gradient: {
      GemmShape s{product, out, in, tokens};
      s.accumulate = true;
      return s;
    }
  }
  return {};
}

void compare(const GemmShape& s, int threads, double seconds) {
  const int64_t a_elements = s.m * s.k, b_elements = s.k * s.n, c_elements = s.m * s.n;
  const Buffer<float> a(a_elements), b(b_elements), c(c_elements), c_dnn(c_elements);
  const Buffer<bf16> a16(a_elements), b16(b_elements), c16(c_elements);
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < a_elements; ++i) a16.data[i] = bf16(a.data[i] = uniform(random));
  for (int64_t i = 0; i < b_elements; ++i) b16.data[i] = bf16(b.data[i] = uniform(random));
  std::fill_n(c.data, c_elements, 0.0f);
  std::fill_n(c_dnn.data, c_elements, 0.0f);
  std::fill_n(c16.data, c_elements, bf16());

  // Gradients of weights are f32, activations have the format of their inputs.
  GemmShape s16 = s;
  s16.a = s16.b = Format::bf16;
  s16.c = s.product == Product::weight_gradient ? Format::f32 : Format::bf16;
  const View to16 =
      s16.c == Format::bf16 ? c16.view(Format::bf16, s.m, s.n) : c.view(Format::f32, s.m, s.n);
  const size_t bytes = std::max(gemm_workspace(s, threads), gemm_workspace(s16, threads));
  const Buffer<std::byte> workspace(static_cast<int64_t>(bytes));
  const std::span<std::byte> scratch(workspace.data, bytes);
  OneDnn one_dnn(s, a.data, b.data, c_dnn.data);

  const auto run32 = [&] {
    gemm(s, a.view(Format::f32, 0, 0), b.view(Format::f32, 0, 0), {}, c.view(Format::f32, s.m, s.n),
         scratch, threads);
  };
  const auto run16 = [&] {
    gemm(s16, a16.view(Format::bf16, 0, 0), b16.view(Format::bf16, 0, 0), {}, to16, scratch,
         threads);
  };
  run32(), run16(), one_dnn.run();
  Times matmul(threads), sgemms(threads), ours32(threads), ours16(threads);
  while (matmul.count() < 5 ||
         matmul.total() + sgemms.total() + ours32.total() + ours16.total() < seconds) {
    matmul.add([&] { one_dnn.run(); });
    ours32.add(run32);
    sgemms.add([&] { sgemm(s, a.data, b.data, c_dnn.data); });
    ours16.add(run16);
  }
  const double gflop =
      2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const double least = std::min(matmul.least(), sgemms.least());
  const double median = std::min(matmul.median(), sgemms.median());
  fmt::print(
      "{:16} {:6} {:6} {:6} {:7.1f} {:7.1f} {:7.1f} {:7.1f} | {:5.2f} {:5.2f} | {:5.2f} {:5.2f} | "
      "{:5.1f} MiB\n",
      name(s.product), s.m, s.n, s.k, gflop / matmul.least(), gflop / sgemms.least(),
      gflop / ours32.least(), gflop / ours16.least(), least / ours32.least(),
      median / ours32.median(), least / ours16.least(), median / ours16.median(),
      static_cast<double>(bytes) / 1048576);
  std::fflush(stdout);
}

}  // namespace
}  // namespace plimsoll::cpu

int main(int argc, char** argv) {
  using plimsoll::step::Product;
  const int threads = argc > 1 ? std::atoi(argv[1]) : omp_get_max_threads();
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1.0;
  omp_set_num_threads(threads);
  fmt::print("{} threads; GFLOP/s at the least time, ratio to oneDNN's better f32 product\n\n",
             threads);
  fmt::print(
      "{:16} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} | f32: least, median | bf16: least, "
      "median\n",
      "product", "m", "n", "k", "matmul", "sgemm", "f32", "bf16");
  for (const int64_t tokens : {256, 1024}) {
    for (const auto& [in, out] :
         {std::pair{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}, {768, 50257}}) {
      for (const Product product :
           {Product::forward, Product::input_gradient, Product::weight_gradient}) {
        plimsoll::cpu::compare(plimsoll::cpu::shape_of(product, tokens, in, out), threads, seconds);
      }
    }
  }
}
