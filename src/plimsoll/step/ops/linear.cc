#include "plimsoll/step/ops/linear.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

namespace {

// (rows, columns) of c and the length of the sum.
struct Extent {
  Shape c;
  int64_t k;
};

Extent extent(Product product, const Shape& a, const Shape& b) {
  switch (product) {
    case Product::forward:
      check(a.columns == b.columns, "mat_mul forward: columns of a and b differ");
      return {{a.rows, b.rows}, a.columns};
    case Product::input_gradient:
      check(a.columns == b.rows, "mat_mul input gradient: columns of a are not the rows of b");
      return {{a.rows, b.columns}, a.columns};
    case Product::weight_gradient:
      check(a.rows == b.rows, "mat_mul weight gradient: rows of a and b differ");
      return {{a.columns, b.columns}, a.rows};
  }
  return {};
}

}  // namespace

OutputTypes infer(const MatMul& kind, InputTypes in) {
  check(in.size() == 2u + kind.has_bias + kind.accumulate, "mat_mul takes a, b, bias, c");
  check(in[0].format == in[1].format, "mat_mul: a and b have one format");
  check(!kind.has_bias || !kind.accumulate, "mat_mul: a bias and an accumulation");
  const TensorType c = {extent(kind.product, in[0].shape, in[1].shape).c, kind.output};
  check(!kind.has_bias || in[2] == TensorType{{1, c.shape.columns}, Format::f32},
        "mat_mul: the bias is an f32 vector of c's columns");
  return {{c, kind.accumulate ? 2 : -1}};
}

void differentiate(const MatMul& kind, const Op& op, GradientBuilder& builder) {
  check(kind.product == Product::forward, "mat_mul: only the forward product is differentiated");
  const Operand x = op.inputs[0], weight = op.inputs[1];
  const Operand dy{*builder.gradient(op.outputs[0].tensor)};

  // The weight's gradient first: x is freed before its own gradient comes to life.
  const Operand dweight{builder.weight_gradient(weight.tensor)};
  builder.emit(MatMul{.product = Product::weight_gradient, .accumulate = true}, {dy, x, dweight},
               {dweight});
  if (kind.has_bias) {
    const Operand dbias{builder.weight_gradient(op.inputs[2].tensor)};
    builder.emit(BiasGradient{}, {dy, dbias}, {dbias});
  }
  const bool accumulate = builder.accumulates(x.tensor);
  const Operand dx{accumulate ? *builder.gradient(x.tensor) : builder.new_gradient(x.tensor)};
  std::vector<Operand> inputs = {dy, weight};
  if (accumulate) inputs.push_back(dx);
  builder.emit(MatMul{.product = Product::input_gradient,
                      .accumulate = accumulate,
                      .output = builder.program().tensor(x.tensor).type.format},
               inputs, {dx});
}

Flops flops(const MatMul& kind, InputTypes in) {
  const Extent e = extent(kind.product, in[0].shape, in[1].shape);
  return {2.0 * static_cast<double>(e.c.rows) * static_cast<double>(e.c.columns) *
          static_cast<double>(e.k)};
}

OutputTypes infer(const BiasGradient&, InputTypes in) {
  check(in.size() == 2 && in[1].shape == Shape{1, in[0].shape.columns},
        "bias_gradient takes dy and dbias");
  return {{in[1], 1}};
}

Flops flops(const BiasGradient&, InputTypes in) {
  return {static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step
