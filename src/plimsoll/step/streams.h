// What runs beside what: the order that program order on each stream and `Op::after` leave.
#pragma once

#include <array>
#include <vector>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

class StreamOrder {
 public:
  explicit StreamOrder(const Program&);

  // Whether op `first` has ended whenever op `second`, which comes after it in the program, begins.
  bool ends_before(int first, int second) const;

  // The last op in program order that may still run beside `op`, or `op` itself: whatever comes
  // behind it begins after `op` has ended. Bytes that `op` uses may be given away from there on.
  int last_beside(int op) const { return several_ ? last_beside_[static_cast<size_t>(op)] : op; }

 private:
  // Of each stream, the last op that has ended when this one has; -1: none.
  using Ended = std::array<int, stream_count>;

  bool several_ = false;  // streams; else every op comes after all before it
  std::vector<int> streams_;
  std::vector<Ended> ended_;
  std::vector<int> last_beside_;
};

}  // namespace plimsoll::step
