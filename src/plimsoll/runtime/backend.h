// What a device must answer: how much scratch an op needs, and how to run it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "plimsoll/base/units.h"
#include "plimsoll/runtime/view.h"
#include "plimsoll/step/program.h"

namespace plimsoll::runtime {

// The operands of one op, resolved to addresses in the arena.
struct Bindings {
  std::span<const View> inputs;
  std::span<const View> outputs;
  std::span<std::byte> workspace;
};

// One op, ready to run any number of times on the addresses it was prepared for. Never allocates.
using Launch = std::function<void()>;

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu: 2 threads, AVX2, f32 products" - what runs, for logs and the run directory.
  virtual std::string description() const = 0;

  // Scratch bytes `op` needs, its libraries' included.
  virtual Bytes workspace(const step::Program&, const step::Op& op) const = 0;

  // Library objects are created here, before the arena is committed to.
  virtual Launch prepare(const step::Op& op, const Bindings&) const = 0;

  // Memory that the arena may take, and where the figure comes from ("MemAvailable").
  struct Capacity {
    Bytes bytes;
    std::string source;
  };
  virtual Capacity capacity() const = 0;
};

// The program with the scratch that `backend` needs planned into it: the last pass before the plan.
step::Program with_workspaces(step::Program program, const Backend& backend);

}  // namespace plimsoll::runtime
