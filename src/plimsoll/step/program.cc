#include "plimsoll/step/program.h"

#include <algorithm>
#include <unordered_set>

#include "plimsoll/step/streams.h"

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
  return std::visit([](const auto& kind) { return kind_name(kind); }, op.kind);
}

TensorId add_tensor(Program& program, Tensor tensor) {
  program.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program.tensors.size() - 1);
}

TensorType type_of(const Program& program, const Operand& operand) {
  return operand.type ? *operand.type : program.tensor(operand.tensor).type;
}

Operand rows(const Program& program, const Operand& of, int64_t begin, int64_t count) {
  TensorType type = type_of(program, of);
  check(begin >= 0 && count > 0 && begin + count <= type.shape.rows,
        fmt::format("rows outside {}", program.tensor(of.tensor).name));
  type.shape.rows = count;
  return {of.tensor, of.offset + begin * type.shape.columns, type};
}

int64_t first_row(const Program& program, const Operand& operand) {
  return operand.offset / program.tensor(operand.tensor).type.shape.columns;
}

std::vector<TensorType> types_of(const Program& program, const std::vector<Operand>& operands) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const Operand& operand : operands) types.push_back(type_of(program, operand));
  return types;
}

namespace {

bool overlap(const Program& program, const Operand& a, const Operand& b) {
  const auto end = [&](const Operand& operand) {
    return operand.offset + type_of(program, operand).shape.elements();
  };
  return a.tensor == b.tensor && a.offset < end(b) && b.offset < end(a);
}

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
    // Nowhere else: a kernel may read the rest of an input after it began to write.
    for (size_t j = 0; j < op.inputs.size(); ++j) {
      check(static_cast<int>(j) == source || !overlap(program, op.inputs[j], op.outputs[i]),
            fmt::format("{} writes {} over its input {}", kind_name(op), tensor.name, j));
    }
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

namespace {

// An op that waits, waits for ops before it; ops that may run side by side touch no element that
// one of them writes.
void check_streams(const Program& program) {
  struct Use {
    int op;
    bool writes;
    Operand operand;
  };
  const StreamOrder order(program);
  std::vector<std::vector<Use>> uses(program.tensors.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const int index = static_cast<int>(i);
    for (const int other : op.after) {
      check(other >= 0 && other < index, fmt::format("op {} waits for op {}", index, other));
    }
    const auto use = [&](const Operand& operand, bool writes) {
      for (const Use& earlier : uses[static_cast<size_t>(operand.tensor)]) {
        if (program.ops[static_cast<size_t>(earlier.op)].stream == op.stream) continue;
        check(order.ends_before(earlier.op, index) || !(writes || earlier.writes) ||
                  !overlap(program, earlier.operand, operand),
              fmt::format("{} (op {}) uses {} beside op {}", kind_name(op), index,
                          program.tensor(operand.tensor).name, earlier.op));
      }
      uses[static_cast<size_t>(operand.tensor)].push_back({index, writes, operand});
    };
    for (const Operand& operand : op.inputs) use(operand, false);
    for (const Operand& operand : op.outputs) use(operand, true);
  }
}

bool has_streams(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
    return op.stream != Stream::compute || !op.after.empty();
  });
}

}  // namespace

void check_without_waits(const Program& program, std::string_view pass) {
  for (const Op& op : program.ops) {
    check(op.after.empty(), fmt::format("{} runs before ops wait for others", pass));
  }
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
        if (!operand.type) continue;
        const Tensor& tensor = program.tensor(operand.tensor);
        check(operand.type->format == tensor.type.format && operand.offset >= 0 &&
                  operand.offset + operand.type->shape.elements() <= tensor.type.shape.elements(),
              fmt::format("{} addresses elements outside {}", kind_name(op), tensor.name));
        check(bytes_of(tensor.type.format, operand.offset) * 8 ==
                  bytes_of(tensor.type.format, 8 * operand.offset),
              fmt::format("{} begins within a byte of {}", kind_name(op), tensor.name));
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
  if (has_streams(program)) check_streams(program);
}

namespace {

std::string to_text(const Program& program, const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands) {
    const Tensor& tensor = program.tensor(operand.tensor);
    const TensorType type = type_of(program, operand);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", tensor.name);
    if (operand.type && type.shape.columns == tensor.type.shape.columns) {
      const int64_t begin = first_row(program, operand);
      text += fmt::format("[{}:{}]", begin, begin + type.shape.rows);
    } else if (operand.type) {
      text += fmt::format("[{}+]", operand.offset);
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
