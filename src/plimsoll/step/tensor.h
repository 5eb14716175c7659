// A tensor of a step program: a named matrix with a number format and a role.
//
// Every tensor is a row-major matrix. Activations have one row a token, so that any op that works
// token by token can be applied to a range of rows; vectors of weights have one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/numerics/format.h"

namespace plimsoll::step {

struct Shape {
  int64_t rows = 1;
  int64_t columns = 1;
  bool operator==(const Shape&) const = default;
  int64_t elements() const { return rows * columns; }
};

struct TensorType {
  Shape shape;
  Format format = Format::f32;
  bool operator==(const TensorType&) const = default;
};

inline Bytes bytes(const TensorType& type) {
  return {bytes_of(type.format, type.shape.elements())};
}

enum class Role : uint8_t {
  param,       // weights as the products read them
  grad,        // accumulated gradients of weights
  optimizer,   // master weights and moments
  activation,  // lives within one phase
  saved,       // made in the forward, read in the backward
  comm,        // buffers of collectives
  workspace,   // scratch of one op, constant tables, checkpoint snapshots
  input,       // token ids, targets, and the numbers a step is given
};
constexpr int role_count = 8;
std::string_view name(Role role);

struct Tensor {
  std::string name;  // "layers.3.mlp.gate_up"
  TensorType type;
  Role role = Role::activation;
  int layer = -1;           // -1: outside the layers
  bool persistent = false;  // keeps its bytes over the whole run instead of a lifetime in the step
};

inline Bytes bytes(const Tensor& tensor) { return bytes(tensor.type); }

using TensorId = int32_t;

// What an op reads or writes: a tensor as it is, or a piece of it: a matrix of `type` whose
// elements lie one after another from element `offset` on. Rows of an activation are a piece
// (`rows` in program.h), and so is a parameter inside a flat unit of many.
struct Operand {
  TensorId tensor = -1;
  int64_t offset = 0;              // in elements of the tensor's format
  std::optional<TensorType> type;  // empty: the whole tensor
  bool operator==(const Operand&) const = default;
};

}  // namespace plimsoll::step
