// A device: its memory, its queues of work, the scratch its ops need, and how to run them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "plimsoll/base/units.h"
#include "plimsoll/runtime/view.h"
#include "plimsoll/step/program.h"

namespace plimsoll::runtime {

// Memory of the device, given back with its last owner. The host must not address it, unless the
// back end shares the host's memory.
using Memory = std::shared_ptr<std::byte>;

// Work that runs in order, each piece after the one before it. Work of two queues runs side by side
// where no event orders it. The handle is the back end's.
struct Queue {
  void* handle = nullptr;
};

// A point in the work of a queue, as the back end knows it.
using Event = std::shared_ptr<void>;

// The operands of one op, resolved to addresses in the arena.
struct Bindings {
  std::span<const View> inputs;
  std::span<const View> outputs;
  std::span<std::byte> workspace;
};

// One op, ready to be put into a queue any number of times on the addresses it was prepared for.
// Never allocates.
using Launch = std::function<void(Queue)>;

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

  // Zero at first. Raises Exit::does_not_fit when the device refuses.
  virtual Memory allocate(Bytes) const = 0;
  virtual bool shares_host_memory() const = 0;

  // The queue of a stream: the same one at every call.
  virtual Queue queue(step::Stream) const = 0;

  // Each takes its turn in the queue. Of the host's bytes, `from` may change as soon as the call
  // returns, and `to` is complete then. None allocates.
  virtual void copy_to_device(Queue, std::byte* to, std::span<const std::byte> from) const = 0;
  virtual void copy_to_host(Queue, std::span<std::byte> to, const std::byte* from) const = 0;
  virtual void copy(Queue, std::byte* to, const std::byte* from, Bytes) const = 0;
  virtual void fill(Queue, std::byte* to, std::byte value, Bytes) const = 0;

  // `record` marks the work in the queue so far; what enters a queue after `wait` begins when the
  // work last marked has ended. An event that was never recorded holds nobody up.
  virtual Event make_event() const = 0;
  virtual void record(Queue, const Event&) const = 0;
  virtual void wait(Queue, const Event&) const = 0;

  // Returns when everything in the queue has ended.
  virtual void synchronize(Queue) const = 0;
};

// The program with the scratch that `backend` needs planned into it: the last pass before the plan.
step::Program with_workspaces(step::Program program, const Backend& backend);

}  // namespace plimsoll::runtime
