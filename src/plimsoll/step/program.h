// A training step as a flat list of operations over named tensors.
//
// Built by builder.h, rewritten by passes/, then only read: by memory_plan.h, by the cost model and
// by the executor. Ops are in execution order; an op may read a tensor only after an op before it,
// or something outside the program (weights, inputs), wrote it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/step/op.h"
#include "plimsoll/step/tensor.h"

namespace plimsoll::step {

struct Program {
  std::vector<Tensor> tensors;
  std::vector<Op> ops;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
};

// Adds a tensor; its name must not be taken.
TensorId add_tensor(Program&, Tensor);

// Type of what the operand covers: its own, or the tensor's when it is the whole tensor.
TensorType type_of(const Program&, const Operand&);
std::vector<TensorType> types_of(const Program&, const std::vector<Operand>&);

// The rows [begin, begin + count) of what `of` covers.
Operand rows(const Program&, const Operand& of, int64_t begin, int64_t count);

// The row of its tensor at which the operand begins.
int64_t first_row(const Program&, const Operand&);

// Appends an op after checking that its outputs have the inferred types.
void append(Program&, Op op);

// FLOPs of one op, and of all ops of a phase.
Flops flops(const Program&, const Op&);
Flops flops(const Program&, Phase);

// Bytes an op reads and writes, each operand counted once in each direction.
Bytes bytes_read(const Program&, const Op&);
Bytes bytes_written(const Program&, const Op&);

// Gives Role::saved to every activation that the forward writes and the backward reads.
void mark_saved(Program&);

// Gives every op for which `bytes_needed` is not zero a workspace tensor of that size.
// The backend answers `bytes_needed`, so that the scratch of its libraries is planned.
Program add_workspaces(Program,
                       const std::function<Bytes(const Program&, const Op&)>& bytes_needed);

// Raises Exit::bug when an op reads what nothing wrote, has outputs of the wrong type, addresses
// elements outside a tensor, or uses a tensor that an op of another stream may still be writing.
void validate(const Program&);

// Raises Exit::bug when an op waits for another: a pass that moves ops would lose which. Ops on
// other streams are added by the last passes.
void check_without_waits(const Program&, std::string_view pass);

// One line an op: phase, layer, kind, outputs <- inputs, with types. For people and for tests.
std::string listing(const Program&);

}  // namespace plimsoll::step
