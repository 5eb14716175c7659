#include "plimsoll/step/passes/chunk_ffn.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace plimsoll::step {

namespace {

bool uses(const std::vector<Operand>& operands, const std::set<TensorId>& tensors) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return tensors.contains(operand.tensor); });
}

// One FFN: its ops by index, and the tensors that only they use.
struct Ffn {
  std::vector<size_t> forward;   // product, activation function, product
  std::vector<size_t> backward;  // everything that reads or writes `inner`
  std::set<TensorId> inner;      // both inner activations and their gradients

  bool recomputes(size_t index) const { return index != forward.back(); }
};

bool is_activation_function(const Op& op) {
  return std::visit([]<class Kind>(const Kind&) { return IsFfnActivation<Kind>; }, op.kind);
}

Ffn ffn_around(const Program& program, size_t function) {
  const Op& op = program.ops[function];
  Ffn ffn;
  ffn.inner = {op.inputs[0].tensor, op.outputs[0].tensor};
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& other = program.ops[i];
    if (other.phase == Phase::forward &&
        (uses(other.inputs, ffn.inner) || uses(other.outputs, ffn.inner))) {
      ffn.forward.push_back(i);
    }
    if (other.phase == Phase::backward && uses(other.inputs, {op.inputs[0].tensor})) {
      ffn.inner.insert({other.inputs[0].tensor, other.outputs[0].tensor});
    }
  }
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& other = program.ops[i];
    if (other.phase == Phase::backward &&
        (uses(other.inputs, ffn.inner) || uses(other.outputs, ffn.inner))) {
      ffn.backward.push_back(i);
    }
  }
  check(ffn.forward.size() == 3, "an FFN is a product, an activation function and a product");
  return ffn;
}

// Rows of the activations.
struct Chunk {
  int64_t begin = 0, rows = 0;
};

// A setting that silently does nothing for a layer is a bug of the builder.
void require_an_ffn_in_every_layer(const Program& program) {
  std::set<int> layers, with_ffn;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::forward || op.layer < 0) continue;
    layers.insert(op.layer);
    if (is_activation_function(op)) with_ffn.insert(op.layer);
  }
  check(layers == with_ffn, "a layer has no FFN that could run in chunks");
}

class Chunking {
 public:
  Chunking(Program program, int64_t tokens) : source_(std::move(program)), tokens_(tokens) {
    result_.tensors = source_.tensors;
  }

  Program run() {
    check_without_waits(source_, "chunk_ffn");
    std::map<size_t, Ffn> at_end;  // emitted in place of the last op of its forward or backward
    std::set<size_t> replaced;
    for (size_t i = 0; i < source_.ops.size(); ++i) {
      const Op& op = source_.ops[i];
      if (op.phase != Phase::forward || !is_activation_function(op)) continue;
      const Ffn ffn = ffn_around(source_, i);
      if (source_.tensor(op.outputs[0].tensor).type.shape.rows <= tokens_) continue;
      at_end[ffn.forward.back()] = ffn;
      at_end[ffn.backward.back()] = ffn;
      replaced.insert(ffn.forward.begin(), ffn.forward.end());
      replaced.insert(ffn.backward.begin(), ffn.backward.end());
      for (const TensorId id : ffn.inner) result_.tensor(id).role = Role::activation;
    }
    for (size_t i = 0; i < source_.ops.size(); ++i) {
      if (const auto end = at_end.find(i); end != at_end.end()) {
        emit(end->second, source_.ops[i].phase);
      } else if (!replaced.contains(i)) {
        result_.ops.push_back(source_.ops[i]);
      }
    }
    return std::move(result_);
  }

 private:
  void emit(const Ffn& ffn, Phase phase) {
    const TensorId any = *ffn.inner.begin();
    const int64_t rows = source_.tensor(any).type.shape.rows;
    for (int64_t begin = 0, end = 0; begin < rows; begin = end) {
      end = rows - begin < tokens_ + tokens_ / 8 ? rows : begin + tokens_;
      const Chunk chunk = {begin, end - begin};
      std::unordered_map<TensorId, TensorId> inner;
      for (const size_t i : ffn.forward) {
        if (phase == Phase::forward) emit(i, Phase::forward, chunk, ffn, inner);
        if (phase == Phase::backward && ffn.recomputes(i)) {
          emit(i, Phase::recompute, chunk, ffn, inner);
        }
      }
      if (phase == Phase::forward) continue;
      for (const size_t i : ffn.backward) emit(i, Phase::backward, chunk, ffn, inner);
    }
  }

  // Op `index` on one chunk: its inner tensors are those of the chunk, its other activations the
  // chunk's rows. Weights, biases and their gradients are persistent.
  void emit(size_t index, Phase phase, const Chunk& chunk, const Ffn& ffn,
            std::unordered_map<TensorId, TensorId>& inner) {
    Op op = source_.ops[index];
    op.phase = phase;
    const auto take = [&](Operand& operand) {
      if (ffn.inner.contains(operand.tensor)) {
        operand.tensor = chunk_of(operand.tensor, chunk, phase, inner);
      } else if (!source_.tensor(operand.tensor).persistent) {
        operand = rows(source_, operand, chunk.begin, chunk.rows);
      }
    };
    std::for_each(op.inputs.begin(), op.inputs.end(), take);
    std::for_each(op.outputs.begin(), op.outputs.end(), take);
    append(result_, std::move(op));
  }

  TensorId chunk_of(TensorId id, const Chunk& chunk, Phase phase,
                    std::unordered_map<TensorId, TensorId>& inner) {
    const auto [entry, inserted] = inner.try_emplace(id, -1);
    if (inserted) {
      Tensor tensor = source_.tensor(id);
      tensor.name += fmt::format(".chunk{}{}", chunk.begin / tokens_,
                                 phase == Phase::recompute ? ".recomputed" : "");
      tensor.type.shape.rows = chunk.rows;
      tensor.role = Role::activation;
      entry->second = add_tensor(result_, std::move(tensor));
    }
    return entry->second;
  }

  const Program source_;
  const int64_t tokens_;
  Program result_;
};

}  // namespace

Program chunk_ffn(Program program, int64_t tokens) {
  if (tokens <= 0) return program;
  require_an_ffn_in_every_layer(program);
  return Chunking(std::move(program), tokens).run();
}

}  // namespace plimsoll::step
