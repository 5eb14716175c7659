#include "plimsoll/step/program.h"

#include <algorithm>
#include <unordered_set>

namespace plimsoll::step {

std::string_view name(Role role) {
  constexpr std::string_view names[role_count] = {"param", "grad", "optimizer", "activation",
                                                  "saved", "comm", "workspace", "input"};
  return names[static_cast<size_t>(role)];
}

std::string_view name(Phase phase) {
  constexpr std::string_view names[] = {"setup", "forward", "recompute", "backward", "optimizer"};
  return names[static_cast<size_t>(phase)];
}

std::string_view kind_name(const Op& op) {
  return std::visit([]<class Kind>(const Kind&) { return std::string_view(Kind::kind_name); },
                    op.kind);
}

TensorId add_tensor(Program& program, Tensor tensor) {
  program.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program.tensors.size() - 1);
}

TensorId find_tensor(const Program& program, std::string_view name) {
  const auto found = std::find_if(program.tensors.begin(), program.tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == program.tensors.end() ? -1
                                        : static_cast<TensorId>(found - program.tensors.begin());
}

TensorType type_of(const Program& program, const Operand& operand) {
  TensorType type = program.tensor(operand.tensor).type;
  if (operand.rows != Operand::all_rows) type.shape.rows = operand.rows;
  return type;
}

std::vector<TensorType> types_of(const Program& program, const std::vector<Operand>& operands) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const Operand& operand : operands) types.push_back(type_of(program, operand));
  return types;
}

namespace {

void check_outputs(const Program& program, const Op& op) {
  const std::vector<TensorType> inputs = types_of(program, op.inputs);
  const OutputTypes inferred =
      std::visit([&](const auto& kind) { return infer(kind, inputs); }, op.kind);
  check(
      inferred.size() == op.outputs.size(),
      fmt::format("{} has {} outputs, not {}", kind_name(op), inferred.size(), op.outputs.size()));
  for (size_t i = 0; i < inferred.size(); ++i) {
    const Tensor& tensor = program.tensor(op.outputs[i].tensor);
    check(inferred[i].type == type_of(program, op.outputs[i]),
          fmt::format("{} infers ({}, {}) {} for {}", kind_name(op), inferred[i].type.shape.rows,
                      inferred[i].type.shape.columns, name(inferred[i].type.format), tensor.name));
    const int source = inferred[i].in_place_of;
    check(source < 0 || op.inputs[static_cast<size_t>(source)] == op.outputs[i],
          fmt::format("{} writes {} in place", kind_name(op), tensor.name));
  }
}

}  // namespace

void append(Program& program, Op op) {
  check_outputs(program, op);
  program.ops.push_back(std::move(op));
}

Flops flops(const Program& program, const Op& op) {
  const std::vector<TensorType> inputs = types_of(program, op.inputs);
  return std::visit([&](const auto& kind) { return flops(kind, inputs); }, op.kind);
}

Flops flops(const Program& program, Phase phase) {
  Flops sum;
  for (const Op& op : program.ops) {
    if (op.phase == phase) sum += flops(program, op);
  }
  return sum;
}

namespace {

Bytes total_bytes(const Program& program, const std::vector<Operand>& operands) {
  Bytes sum;
  for (const Operand& operand : operands) sum += bytes(type_of(program, operand));
  return sum;
}

}  // namespace

Bytes bytes_read(const Program& program, const Op& op) { return total_bytes(program, op.inputs); }

Bytes bytes_written(const Program& program, const Op& op) {
  return total_bytes(program, op.outputs);
}

void mark_saved(Program& program) {
  std::vector<bool> written_in_forward(program.tensors.size(), false);
  for (const Op& op : program.ops) {
    if (op.phase == Phase::forward) {
      for (const Operand& output : op.outputs) {
        written_in_forward[static_cast<size_t>(output.tensor)] = true;
      }
    } else if (op.phase == Phase::backward || op.phase == Phase::recompute) {
      for (const Operand& input : op.inputs) {
        Tensor& tensor = program.tensor(input.tensor);
        if (tensor.role == Role::activation &&
            written_in_forward[static_cast<size_t>(input.tensor)]) {
          tensor.role = Role::saved;
        }
      }
    }
  }
}

Program add_workspaces(Program program,
                       const std::function<Bytes(const Program&, const Op&)>& bytes_needed) {
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Bytes needed = bytes_needed(program, program.ops[i]);
    if (needed.count == 0) continue;
    const Op& op = program.ops[i];
    const TensorId id =
        add_tensor(program, {.name = fmt::format("workspace.{}.{}", i, kind_name(op)),
                             .type = {{1, (needed.count + 3) / 4}, Format::i32},
                             .role = Role::workspace,
                             .layer = op.layer});
    program.ops[i].workspace = id;
  }
  return program;
}

void validate(const Program& program) {
  std::unordered_set<std::string_view> names;
  std::vector<bool> written(program.tensors.size());
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    check(names.insert(program.tensors[i].name).second,
          fmt::format("two tensors are called {}", program.tensors[i].name));
    written[i] = program.tensors[i].persistent;
  }
  for (const Op& op : program.ops) {
    for (const auto* operands : {&op.inputs, &op.outputs}) {
      for (const Operand& operand : *operands) {
        const Tensor& tensor = program.tensor(operand.tensor);
        check(operand.rows == Operand::all_rows ||
                  (operand.row_begin >= 0 &&
                   operand.row_begin + operand.rows <= tensor.type.shape.rows),
              fmt::format("{} addresses rows outside {}", kind_name(op), tensor.name));
      }
    }
    for (const Operand& input : op.inputs) {
      check(written[static_cast<size_t>(input.tensor)],
            fmt::format("{} reads {} before anything wrote it", kind_name(op),
                        program.tensor(input.tensor).name));
    }
    check_outputs(program, op);
    for (const Operand& output : op.outputs) written[static_cast<size_t>(output.tensor)] = true;
  }
}

namespace {

std::string to_text(const Program& program, const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands) {
    const Tensor& tensor = program.tensor(operand.tensor);
    const TensorType type = type_of(program, operand);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", tensor.name);
    if (operand.rows != Operand::all_rows) {
      text += fmt::format("[{}:{}]", operand.row_begin, operand.row_begin + operand.rows);
    }
    text += fmt::format(" ({}, {}) {}", type.shape.rows, type.shape.columns, name(type.format));
  }
  return text;
}

}  // namespace

std::string listing(const Program& program) {
  std::string text;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    text += fmt::format("{:5} {:9} {:>3} {:20} {} <- {}\n", i, name(op.phase),
                        op.layer < 0 ? "-" : fmt::format("{}", op.layer), kind_name(op),
                        to_text(program, op.outputs), to_text(program, op.inputs));
  }
  return text;
}

}  // namespace plimsoll::step
