#include "plimsoll/runtime/cpu/cpu_backend.h"

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/runtime/cpu/kernels/quantize.h"
#include "plimsoll/runtime/cpu/kernels/scalars.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/cpu/matmul.h"
#include "plimsoll/runtime/cpu/pages.h"
#include "plimsoll/runtime/cpu/quantized.h"
#include "plimsoll/runtime/cpu/scratch.h"
#include "plimsoll/runtime/cpu/threads.h"

namespace plimsoll::cpu {

namespace {

using namespace step;  // the op kinds
using runtime::Bindings;
using runtime::Queue;
using Launch = Work;  // until it is wrapped for the executor

// One `launch` overload an op kind; a new kind without one does not compile.

TensorType type_of_view(const View& view) { return {{view.rows, view.columns}, view.format}; }

// The operands of one op, copied out of the bindings so that a launch can keep them.
struct Operands {
  std::vector<View> in, out;
  std::span<std::byte> workspace;
  ProductSettings products;

  View in_or_none(size_t index) const { return index < in.size() ? in[index] : View{}; }
  View out_or_none(size_t index) const { return index < out.size() ? out[index] : View{}; }
};

Launch launch(const RopeTable& k, Operands o) {
  return [=, frequencies = model::rope_frequencies(k.rope, k.head_dim)] {
    rope_table(frequencies, o.out[0]);
  };
}
Launch launch(const Cast&, Operands o) {
  return [=] { to_bf16(o.in[0], o.out[0]); };
}
Launch launch(const Embedding& k, Operands o) {
  return [=] { embedding(o.in[0], o.in[1], o.in_or_none(2), k.sequence, o.out[0]); };
}
Launch launch(const EmbeddingBackward& k, Operands o) {
  return [=] { embedding_backward(o.in[0], o.in[1], k.sequence, o.out[0], o.out_or_none(1)); };
}
Launch launch(const RmsNorm& k, Operands o) {
  return [=] { rms_norm(o.in[0], o.in[1], k.eps, o.out[0], o.out[1]); };
}
Launch launch(const AddRmsNorm& k, Operands o) {
  return [=] { add_rms_norm(o.in[0], o.in[1], o.in[2], k.eps, o.out[0], o.out[1], o.out[2]); };
}
Launch launch(const RmsNormBackward& k, Operands o) {
  return [=] {
    rms_norm_backward(o.in[0], o.in[1], o.in[2], o.in[3], k.accumulate, o.out[0], o.out[1],
                      o.workspace);
  };
}
Launch launch(const LayerNorm& k, Operands o) {
  return [=] { layer_norm(o.in[0], o.in[1], o.in[2], k.eps, o.out[0], o.out[1]); };
}
Launch launch(const AddLayerNorm& k, Operands o) {
  return [=] {
    add_layer_norm(o.in[0], o.in[1], o.in[2], o.in[3], k.eps, o.out[0], o.out[1], o.out[2]);
  };
}
Launch launch(const LayerNormBackward& k, Operands o) {
  return [=] {
    layer_norm_backward(o.in[0], o.in[1], o.in[2], o.in[3], k.accumulate, o.out[0], o.out[1],
                        o.out[2], o.workspace);
  };
}
Launch launch(const MatMul& k, Operands o) {
  const GemmShape shape = gemm_shape(k, type_of_view(o.in[0]), type_of_view(o.in[1]));
  const View bias = k.has_bias ? o.in[2] : View{};
  return [=] { matmul(shape, o.in[0], o.in[1], bias, o.out[0], o.workspace, o.products); };
}
Launch launch(const BiasGradient&, Operands o) {
  return [=] { bias_gradient(o.in[0], o.out[0], o.workspace); };
}
Launch launch(const Rope& k, Operands o) {
  return [=] { rope(o.out[0], o.in[1], k.heads, k.head_dim, k.sequence, k.inverse); };
}
Launch launch(const QkNorm& k, Operands o) {
  return [=] { qk_norm(o.in[0], o.in[1], o.in[2], k.shape, k.eps, o.out[0], o.out[1]); };
}
Launch launch(const QkNormBackward& k, Operands o) {
  return [=] {
    qk_norm_backward(o.out[0], o.in[1], o.in[2], o.in[3], o.in[4], k.shape, o.out[1], o.out[2],
                     o.workspace);
  };
}
Launch launch(const Attention& k, Operands o) {
  return [=] {
    attention(o.in[0], o.in[1], k.shape, o.out[0], o.out[1], o.workspace, o.products.threads);
  };
}
Launch launch(const AttentionBackward& k, Operands o) {
  return [=] {
    attention_backward(o.in[0], o.in[1], o.in[2], o.in[3], o.in[4], k.shape, o.out[0], o.workspace,
                       o.products.threads);
  };
}
Launch launch(const Glu& k, Operands o) {
  return [=] { glu(k.gate, o.in[0], o.out[0]); };
}
Launch launch(const GluBackward& k, Operands o) {
  return [=] { glu_backward(k.gate, o.in[0], o.in[1], o.out[0]); };
}
Launch launch(const Gelu&, Operands o) {
  return [=] { gelu(o.in[0], o.in_or_none(1), o.out[0]); };
}
Launch launch(const GeluBackward&, Operands o) {
  return [=] { gelu_backward(o.out[0], o.in[1], o.in_or_none(2), o.out_or_none(1), o.workspace); };
}
Launch launch(const CrossEntropy&, Operands o) {
  return [=] { cross_entropy(o.in[0], o.in[1], o.in[2].as<float>()[0], o.out[0], o.out[1]); };
}
Launch launch(const SumLosses&, Operands o) {
  return [=] { sum_losses(o.in[0], o.in[1], *o.out[0].as<LossTotal>()); };
}
Launch launch(const StepGuard& k, Operands o) {
  return [=] {
    step_guard({o.in[0].as<QuantizerStatistics>(), static_cast<size_t>(o.in[0].rows)},
               k.dynamic ? o.out[1].as<QuantizerControl>() : nullptr, k.growth,
               *o.out[0].as<int32_t>());
  };
}
Launch launch(const SquaredNorm& k, Operands o) {
  return [=] { squared_norm(o.in[0], o.out[0], k.slot, o.workspace); };
}
Launch launch(const ClipFactor& k, Operands o) {
  return [=] {
    clip_factor(o.in[0], k.max_norm, o.out[0]);
    const bool skip = o.in.size() > 1 && *o.in[1].as<int32_t>() != 0;
    o.out[0].as<float>()[2] = skip ? 0 : 1;
  };
}
Launch launch(const AdamW& k, Operands o) {
  const AdamWSettings settings = {k.beta1, k.beta2, k.eps, k.weight_decay};
  return [=] {
    if (o.in[5].as<float>()[2] == 0) {
      std::memset(o.out[1].data, 0, o.out[1].bytes().size());
      return;
    }
    adam_w(o.out[0], o.out[1], o.out[2], o.out[3], o.in[4], o.in[5], settings, o.out_or_none(4));
  };
}

Launch launch(const Quantize& k, Operands o) {
  return prepare_quantizer(k, std::move(o.in), std::move(o.out), o.workspace);
}
Launch launch(const QuantizedMatMul& k, Operands o) {
  return prepare_quantized_matmul(k, std::move(o.in), o.out[0], o.workspace, o.products);
}
Launch launch(const UpdateScaling& k, Operands o) {
  return [=] { update_scaling(k.algorithm, k.format_max, k.margin, o.out[0].span<float>()); };
}

class CpuBackend : public runtime::Backend {
 public:
  explicit CpuBackend(const ProductSettings& products)
      : products_(products), scratch_(scratch_model(products)) {
    set_thread_count(products.threads);
  }

  std::string description() const override { return scratch_.device; }

  Bytes workspace(const Program& program, const Op& op) const override {
    return scratch_.workspace(program, op);
  }

  runtime::Launch prepare(const Op& op, const Bindings& bindings) const override {
    Operands operands = {.in = {bindings.inputs.begin(), bindings.inputs.end()},
                         .out = {bindings.outputs.begin(), bindings.outputs.end()},
                         .workspace = bindings.workspace,
                         .products = products_};
    Work work =
        std::visit([&](const auto& kind) { return launch(kind, std::move(operands)); }, op.kind);
    return [work = std::move(work)](Queue) { work(); };
  }

  Capacity capacity() const override { return available_memory(); }

  runtime::Memory allocate(Bytes size) const override { return map_pages(size); }
  bool shares_host_memory() const override { return true; }

  // The calling thread is the only queue: work has ended when its call returns, and program order
  // orders everything.
  Queue queue(Stream) const override { return {}; }
  runtime::Event make_event() const override { return {}; }
  void record(Queue, const runtime::Event&) const override {}
  void wait(Queue, const runtime::Event&) const override {}
  void synchronize(Queue) const override {}

  void copy_to_device(Queue, std::byte* to, std::span<const std::byte> from) const override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void copy_to_host(Queue, std::span<std::byte> to, const std::byte* from) const override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void copy(Queue, std::byte* to, const std::byte* from, Bytes size) const override {
    std::memcpy(to, from, static_cast<size_t>(size.count));
  }
  void fill(Queue, std::byte* to, std::byte value, Bytes size) const override {
    std::memset(to, static_cast<int>(value), static_cast<size_t>(size.count));
  }

 private:
  ProductSettings products_;
  step::ScratchModel scratch_;
};

}  // namespace

std::unique_ptr<runtime::Backend> make_cpu_backend(int threads, std::optional<Bf16Kernel> bf16) {
  return std::make_unique<CpuBackend>(product_settings(threads, bf16));
}

}  // namespace plimsoll::cpu
