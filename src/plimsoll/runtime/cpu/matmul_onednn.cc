#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/matmul.h"
#include "plimsoll/runtime/cpu/targets.h"

namespace plimsoll::cpu {

namespace {

using dnnl::memory;
using step::Product;

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type data_type(Format format) {
  return format == Format::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

struct Descriptors {
  memory::desc a, b, bias, c;
};

// The row-major operands of `shape` as an (m, k) x (k, n) product, transposed through strides.
Descriptors describe(const GemmShape& s) {
  const bool a_transposed = s.product == Product::weight_gradient;
  const bool b_transposed = s.product == Product::forward;
  using dims = memory::dims;
  return {{{s.m, s.k}, data_type(s.a), a_transposed ? dims{1, s.m} : dims{s.k, 1}},
          {{s.k, s.n}, data_type(s.b), b_transposed ? dims{1, s.k} : dims{s.n, 1}},
          {{1, s.n}, memory::data_type::f32, dims{s.n, 1}},
          {{s.m, s.n}, data_type(s.c), dims{s.n, 1}}};
}

// oneDNN's implementation for the shape, when it is one that keeps to its scratchpad; the others
// ("gemm:jit", references) allocate inside the call or are slower than ours.
std::optional<dnnl::matmul::primitive_desc> brgemm(const GemmShape& shape) {
  const auto isa = dnnl::get_effective_cpu_isa();
  const bool avx512 = isa == dnnl::cpu_isa::avx512_core || isa == dnnl::cpu_isa::avx512_core_vnni ||
                      isa == dnnl::cpu_isa::avx512_core_bf16 ||
                      isa == dnnl::cpu_isa::avx512_core_amx;
  const bool has_bf16 =
      isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  if (!avx512 || (shape.a == Format::bf16 && !has_bf16)) return std::nullopt;

  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  const Descriptors d = describe(shape);
  try {
    const auto desc = shape.has_bias ? dnnl::matmul::desc(d.a, d.b, d.bias, d.c)
                                     : dnnl::matmul::desc(d.a, d.b, d.c);
    dnnl::matmul::primitive_desc pd(desc, attr, cpu_engine());
    if (std::string_view(pd.impl_info_str()).starts_with("brg")) return pd;
  } catch (const dnnl::error&) {
    // No implementation for these formats: ours takes it.
  }
  return std::nullopt;
}

}  // namespace

Bytes matmul_workspace(const GemmShape& shape, int threads) {
  if (const auto pd = brgemm(shape)) {
    return {static_cast<int64_t>(pd->scratchpad_desc().get_size())};
  }
  return {static_cast<int64_t>(gemm_workspace(shape, threads))};
}

runtime::Launch prepare_matmul(const GemmShape& shape, const View& a, const View& b,
                               const View& bias, const View& c, std::span<std::byte> workspace,
                               int threads) {
  const auto pd = brgemm(shape);
  if (!pd) return [=] { gemm(shape, a, b, bias, c, workspace, threads); };

  check(workspace.size() >= pd->scratchpad_desc().get_size(), "oneDNN's scratch is planned");
  const dnnl::engine& engine = cpu_engine();
  const auto at = [&](const memory::desc& desc, const View& view) {
    return memory(desc, engine, view.data);
  };
  const Descriptors d = describe(shape);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, at(d.a, a)},
      {DNNL_ARG_WEIGHTS, at(d.b, b)},
      {DNNL_ARG_DST, at(d.c, c)},
      {DNNL_ARG_SCRATCHPAD, memory(pd->scratchpad_desc(), engine, workspace.data())}};
  if (shape.has_bias) arguments.emplace(DNNL_ARG_BIAS, at(d.bias, bias));
  return [product = dnnl::matmul(*pd), stream = dnnl::stream(engine),
          arguments = std::move(arguments)]() mutable {
    product.execute(stream, arguments);
    stream.wait();
  };
}

std::string matmul_description(Format format, int) {
  const GemmShape typical = {.product = Product::forward,
                             .m = 256,
                             .n = 768,
                             .k = 768,
                             .a = format,
                             .b = format,
                             .c = format};
  const auto pd = brgemm(typical);
  return pd ? fmt::format("oneDNN {}", pd->impl_info_str()) : gemm_description(format);
}

}  // namespace plimsoll::cpu
