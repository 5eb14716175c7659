// How much scratch the ops of a program need on a device, known without the device.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

struct ScratchModel {
  std::string device;  // "cpu: 2 threads, kernels AVX2, ...": what a plan says it is for
  // Scratch bytes of an op, its libraries' included. Cheap: asked for every op of every candidate.
  std::function<Bytes(const Program&, const Op&)> workspace = [](const Program&, const Op&) {
    return Bytes{};
  };
};

// The program with that scratch planned into it: the last pass before the memory plan.
inline Program with_workspaces(Program program, const ScratchModel& scratch) {
  return add_workspaces(std::move(program), scratch.workspace);
}

}  // namespace plimsoll::step
