#include "plimsoll/step/passes/precision.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace plimsoll::step {

namespace {

// Only the last * may have to take more: an earlier one could gain nothing by it.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t at = 0, star = std::string_view::npos, taken = 0;
  for (size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (at < pattern.size() && pattern[at] == text[i]) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

using Operands = std::vector<Operand>;  // codes, scales?, tensor scale?

// What a MatMul reads as x: a tensor or some of its rows, by the first element.
using Place = std::pair<TensorId, int64_t>;
Place place(const Operand& operand) { return {operand.tensor, operand.offset}; }

const char* suffix(OperandClass operand) {
  switch (operand) {
    case OperandClass::input:
      return "input";
    case OperandClass::weight:
      return "weight";
    case OperandClass::gradient:
      return "gradient";
  }
  return "?";
}

class PrecisionPass {
 public:
  PrecisionPass(TrainingStep step, const RecipeConfig& recipe, int64_t layers)
      : step_(std::move(step)), recipe_(recipe), quantization_(quantization_of(recipe)) {
    const int64_t last = layers - last_bf16_layers(recipe, layers);
    for (const Op& op : step_.program.ops) {
      const auto* product = std::get_if<MatMul>(&op.kind);
      if (!product || product->product != Product::forward || op.layer < 0) continue;
      const TensorId weight = op.inputs[1].tensor;
      if (op.layer < recipe.first_bf16 || op.layer >= last) continue;
      if (matches(recipe.bf16_layers, step_.program.tensor(weight).name)) continue;
      weights_.insert(weight);
    }
    check_without_waits(step_.program, "apply_recipe");
    find_savers();
  }

  TrainingStep run() {
    source_ = std::move(step_.program.ops);
    step_.program.ops.clear();
    add_shared_tensors();
    for (size_t i = 0; i < source_.size(); ++i) rewrite(i);
    for (Tensor& tensor : program().tensors) {
      if (tensor.role == Role::saved) tensor.role = Role::activation;
    }
    mark_saved(program());
    return std::move(step_);
  }

 private:
  Program& program() { return step_.program; }

  // For each input of a weight gradient, the last product before it that quantises the same rows
  // and so makes the copy along the tokens with its own.
  void find_savers() {
    std::map<Place, size_t> reader;
    const std::vector<Op>& ops = step_.program.ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto* product = std::get_if<MatMul>(&ops[i].kind);
      if (!product || ops[i].layer < 0) continue;
      if (product->product == Product::forward && weights_.contains(ops[i].inputs[1].tensor)) {
        reader[place(ops[i].inputs[0])] = i;
      }
      if (product->product != Product::weight_gradient) continue;
      if (const auto found = reader.find(place(ops[i].inputs[1])); found != reader.end()) {
        savers_.insert(found->second);
      }
    }
  }

  void add_shared_tensors() {
    for (const TensorId weight : weights_) {
      for (const OperandClass operand :
           {OperandClass::input, OperandClass::weight, OperandClass::gradient}) {
        std::string name = program().tensor(weight).name;
        name = name.substr(0, name.rfind('.')) + "." + suffix(operand);
        step_.quantizers.list.push_back(
            {.name = std::move(name), .operand = operand, .layer = program().tensor(weight).layer});
        numbers_[{weight, operand}] = static_cast<int64_t>(step_.quantizers.list.size()) - 1;
      }
    }
    const int64_t count = static_cast<int64_t>(step_.quantizers.list.size());
    step_.quantizers.control = add_tensor(program(), {.name = "quantizers.control",
                                                      .type = {{1, 8}, Format::i32},
                                                      .role = Role::input,
                                                      .persistent = true});
    step_.quantizers.statistics =
        add_tensor(program(), {.name = "quantizers.statistics",
                               .type = {{std::max<int64_t>(1, count), 8}, Format::f32},
                               .role = Role::workspace,
                               .persistent = true});
    if (!scales_delayed(recipe_)) return;
    for (QuantizerInfo& info : step_.quantizers.list) {
      info.state = add_tensor(program(), {.name = info.name + ".amax_history",
                                          .type = {{1, recipe_.history + 1}, Format::f32},
                                          .role = Role::optimizer,
                                          .layer = info.layer,
                                          .persistent = true});
    }
  }

  void rewrite(size_t index) {
    const Op& op = source_[index];
    if (op.phase == Phase::optimizer && !scalings_updated_) {
      add_guard();
      update_scalings();
    }
    if (std::holds_alternative<ClipFactor>(op.kind)) {
      Op guarded = op;
      guarded.inputs.push_back({step_.skip});
      return append(program(), std::move(guarded));
    }
    if (const auto* product = std::get_if<MatMul>(&op.kind); product && op.layer >= 0) {
      const TensorId weight = weight_of(*product, op);
      if (weights_.contains(weight)) {
        if (product->product == Product::forward) return rewrite_forward(index, weight);
        if (product->product == Product::weight_gradient)
          return rewrite_weight_gradient(op, weight);
        return rewrite_input_gradient(op, weight);
      }
    }
    const bool sets_weight = (op.phase == Phase::setup || op.phase == Phase::optimizer) &&
                             !op.outputs.empty() && weights_.contains(op.outputs.back().tensor);
    if (!sets_weight) {
      program().ops.push_back(op);
      return;
    }
    rewrite_weight_update(op);
  }

  // A weight gradient names the gradient it adds to; the weight is found through the parameters.
  TensorId weight_of(const MatMul& product, const Op& op) const {
    if (product.product != Product::weight_gradient) return op.inputs[1].tensor;
    for (const ParameterTensors& p : step_.parameters) {
      if (p.gradient == op.outputs[0].tensor) return p.compute;
    }
    return -1;
  }

  // Before anything of the optimizer: what the quantisers met decides whether it changes weights.
  void add_guard() {
    step_.skip = add_tensor(program(), {.name = "optimizer.skip",
                                        .type = {{1, 1}, Format::i32},
                                        .role = Role::optimizer,
                                        .persistent = true});
    Op guard = {.kind = StepGuard{.dynamic = recipe_.name == Recipe::fp16,
                                  .growth = recipe_.loss_scale_growth},
                .inputs = {{step_.quantizers.statistics}},
                .outputs = {{step_.skip}},
                .phase = Phase::optimizer};
    if (recipe_.name == Recipe::fp16) {
      guard.inputs.push_back({step_.quantizers.control});
      guard.outputs.push_back({step_.quantizers.control});
    }
    append(program(), std::move(guard));
  }

  void update_scalings() {
    scalings_updated_ = true;
    for (const QuantizerInfo& info : step_.quantizers.list) {
      if (info.state < 0) continue;
      const Format format = info.operand == OperandClass::gradient ? quantization_.gradient.format
                                                                   : quantization_.input.format;
      append(program(),
             {.kind = UpdateScaling{.algorithm = recipe_.algorithm,
                                    .format_max = format == Format::e5m2 ? max_finite<e5m2>
                                                                         : max_finite<e4m3>,
                                    .margin = static_cast<int>(recipe_.margin)},
              .inputs = {{info.state}},
              .outputs = {{info.state}},
              .phase = Phase::optimizer,
              .layer = info.layer});
    }
  }

  // Adds the tensors of one quantised matrix.
  Operands add_quantized(const std::string& name, const Quantization& q, const Shape& shape,
                         int layer, bool persistent) {
    Operands operands;
    const char* parts[] = {"", ".scales", ".tensor_scale"};
    int part = 0;
    for (const TensorType& type : quantized_types(q, shape)) {
      if (part == 1 && !has_block_scales(q.scaling)) part = 2;
      operands.push_back(
          {add_tensor(program(), {.name = name + parts[part++],
                                  .type = type,
                                  .role = persistent ? Role::param : Role::activation,
                                  .layer = layer,
                                  .persistent = persistent})});
    }
    return operands;
  }

  struct Copies {
    Operands rows, columns;
  };

  // Appends the op that quantises x; the copies that are asked for are new tensors unless given.
  Copies quantize(const Operand& x, TensorId weight, OperandClass operand, bool rows, bool columns,
                  Phase phase, int layer, const Copies& given = {}) {
    const bool is_weight = operand == OperandClass::weight;
    const bool is_gradient = operand == OperandClass::gradient;
    Quantize kind = {.has_rows = rows,
                     .has_columns = columns,
                     .rows = is_weight     ? quantization_.weight
                             : is_gradient ? quantization_.gradient
                                           : quantization_.input,
                     .columns = is_weight     ? quantization_.weight_columns
                                : is_gradient ? quantization_.gradient_columns
                                              : quantization_.input_columns};
    const int64_t number = numbers_.at({weight, operand});
    kind.loss_scaled = scales_loss(recipe_) && is_gradient;
    kind.tensor = static_cast<uint32_t>(number);
    const int64_t row = first_row(program(), x);
    kind.layer = static_cast<uint32_t>(layer) + 0x9E3779B9u * static_cast<uint32_t>(row);
    const Shape shape = type_of(program(), x).shape;
    const std::string name = fmt::format("{}{}.q{}", program().tensor(x.tensor).name,
                                         row > 0 ? fmt::format("[{}]", row) : "", serial_++);
    Copies copies = given;
    if (rows && copies.rows.empty()) {
      copies.rows = add_quantized(name + ".rows", kind.rows, shape, layer, false);
    }
    if (columns && copies.columns.empty()) {
      copies.columns =
          add_quantized(name + ".columns", kind.columns, {shape.columns, shape.rows}, layer, false);
    }
    const Operand statistics = step::rows(program(), {step_.quantizers.statistics}, number, 1);
    Op op = {.kind = kind,
             .inputs = {x, {step_.quantizers.control}, statistics},
             .phase = phase,
             .layer = layer};
    if (rows) op.outputs.insert(op.outputs.end(), copies.rows.begin(), copies.rows.end());
    if (columns) op.outputs.insert(op.outputs.end(), copies.columns.begin(), copies.columns.end());
    op.outputs.push_back(statistics);
    if (const TensorId state = step_.quantizers.list[static_cast<size_t>(number)].state;
        state >= 0) {
      op.inputs.push_back({state});
      op.outputs.push_back({state});
    }
    append(program(), std::move(op));
    return copies;
  }

  void multiply(const Op& like, const MatMul& product, const Quantization& a, Operands operands,
                const Quantization& b, const Operands& b_operands) {
    operands.insert(operands.end(), b_operands.begin(), b_operands.end());
    if (product.has_bias) operands.push_back(like.inputs[2]);
    if (product.accumulate) operands.push_back(like.outputs[0]);
    append(program(), {.kind = QuantizedMatMul{.a = a,
                                               .b = b,
                                               .product = product.product,
                                               .has_bias = product.has_bias,
                                               .accumulate = product.accumulate,
                                               .output = product.output},
                       .inputs = std::move(operands),
                       .outputs = like.outputs,
                       .phase = like.phase,
                       .layer = like.layer});
  }

  void rewrite_forward(size_t index, TensorId weight) {
    const Op& op = source_[index];
    const bool saves = savers_.contains(index);
    const Copies x =
        quantize(op.inputs[0], weight, OperandClass::input, true, saves, op.phase, op.layer);
    if (saves) saved_[place(op.inputs[0])] = x.columns;
    const Copies w = weight_copies(weight, true, false, op);
    multiply(op, std::get<MatMul>(op.kind), quantization_.input, x.rows, quantization_.weight,
             w.rows);
  }

  // The gradient of the output is quantised for both products that read it, here, where the first
  // of them is.
  void rewrite_weight_gradient(const Op& op, TensorId weight) {
    const Copies dy =
        quantize(op.inputs[0], weight, OperandClass::gradient, true, true, op.phase, op.layer);
    gradients_[weight] = dy.rows;
    const Operand x = op.inputs[1];
    const auto saved = saved_.find(place(x));
    const Operands columns =
        saved != saved_.end()
            ? saved->second
            : quantize(x, weight, OperandClass::input, false, true, op.phase, op.layer).columns;
    multiply(op, std::get<MatMul>(op.kind), quantization_.gradient_columns, dy.columns,
             quantization_.input_columns, columns);
  }

  void rewrite_input_gradient(const Op& op, TensorId weight) {
    const auto dy = gradients_.find(weight);
    check(dy != gradients_.end(), "an input gradient comes after its weight gradient");
    const Copies w = weight_copies(weight, false, true, op);
    multiply(op, std::get<MatMul>(op.kind), quantization_.gradient, dy->second,
             quantization_.weight_columns, w.columns);
    gradients_.erase(dy);
  }

  // The quantised weight that a product reads: the one that is kept, or one made for it.
  Copies weight_copies(TensorId weight, bool rows, bool columns, const Op& reader) {
    if (recipe_.cache_weights) return kept(weight);
    return quantize({weight}, weight, OperandClass::weight, rows, columns, reader.phase,
                    reader.layer);
  }

  const Copies& kept(TensorId weight) {
    const auto [entry, inserted] = kept_.try_emplace(weight);
    if (inserted) {
      const Tensor tensor = program().tensor(weight);
      const Shape shape = tensor.type.shape;
      entry->second.rows =
          add_quantized(tensor.name + ".rows", quantization_.weight, shape, tensor.layer, true);
      entry->second.columns = add_quantized(tensor.name + ".columns", quantization_.weight_columns,
                                            {shape.columns, shape.rows}, tensor.layer, true);
    }
    return entry->second;
  }

  // After a weight is set, its kept copies are; without bf16 weights it is set in passing only.
  void rewrite_weight_update(Op op) {
    const TensorId weight = op.outputs.back().tensor;
    if (!recipe_.cache_weights) {
      program().ops.push_back(std::move(op));
      return;
    }
    TensorId source = weight;
    if (!recipe_.bf16_weights) {
      Tensor passing = program().tensor(weight);
      passing.name += fmt::format(".in_{}", name(op.phase));
      passing.role = Role::workspace;
      passing.persistent = false;
      source = add_tensor(program(), std::move(passing));
      op.outputs.back().tensor = source;
      program().tensor(weight).persistent = false;  // nothing uses it any more
    }
    const Phase phase = op.phase;
    const int layer = op.layer;
    program().ops.push_back(std::move(op));
    quantize({source}, weight, OperandClass::weight, true, true, phase, layer, kept(weight));
  }

  TrainingStep step_;
  const RecipeConfig& recipe_;
  const LinearQuantization quantization_;
  std::vector<Op> source_;
  std::set<TensorId> weights_;  // whose three products are quantised
  std::set<size_t> savers_;     // products whose quantised input is also made along the tokens
  std::map<std::pair<TensorId, OperandClass>, int64_t> numbers_;  // rows of the statistics
  std::map<Place, Operands> saved_;
  std::map<TensorId, Operands> gradients_;
  std::map<TensorId, Copies> kept_;
  bool scalings_updated_ = false;
  int serial_ = 0;
};

}  // namespace

bool matches(const std::string& patterns, const std::string& name) {
  std::istringstream list(patterns);
  for (std::string pattern; std::getline(list, pattern, ',');) {
    std::erase(pattern, ' ');
    if (!pattern.empty() && matches_pattern(pattern, name)) return true;
  }
  return false;
}

TrainingStep apply_recipe(TrainingStep step, const RecipeConfig& recipe, int64_t layers) {
  if (recipe.name == Recipe::none) return step;
  return PrecisionPass(std::move(step), recipe, layers).run();
}

}  // namespace plimsoll::step
