// Random programs for property tests of the memory plan: any lifetimes and sizes, no meaning.
#pragma once

#include <rapidcheck.h>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

// Ops are casts between matrices; each op writes a new tensor and reads one that exists. With
// `streams`, ops are on any stream and wait for any earlier ops of others.
inline Program random_program(int ops, bool streams = false) {
  Program program;
  const auto add = [&](bool persistent) {
    const int64_t rows = *rc::gen::inRange<int64_t>(1, 4000);
    return add_tensor(program, {.name = fmt::format("t{}", program.tensors.size()),
                                .type = {{rows, 1}, Format::f32},
                                .role = persistent ? Role::param : Role::activation,
                                .persistent = persistent});
  };
  add(true);
  for (int i = 0; i < ops; ++i) {
    const auto source =
        *rc::gen::inRange<TensorId>(0, static_cast<TensorId>(program.tensors.size()));
    const TensorId target = add(*rc::gen::inRange(0, 10) == 0);
    const int64_t rows =
        std::min(program.tensor(source).type.shape.rows, program.tensor(target).type.shape.rows);
    program.tensor(target).type.format = Format::bf16;
    Op op = {.kind = Cast{},
             .inputs = {step::rows(program, {source}, 0, rows)},
             .outputs = {step::rows(program, {target}, 0, rows)}};
    if (streams) {
      op.stream = static_cast<Stream>(*rc::gen::inRange(0, stream_count));
      for (int waits = *rc::gen::inRange(0, 3); i > 0 && waits > 0; --waits) {
        op.after.push_back(*rc::gen::inRange(0, i));
      }
    }
    if (*rc::gen::inRange(0, 4) == 0) op.workspace = add(false);
    program.ops.push_back(std::move(op));
  }
  return program;
}

}  // namespace plimsoll::step
