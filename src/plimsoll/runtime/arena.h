// The one allocation of a run: anonymous pages, zero at first, given back at the end.
#pragma once

#include <cstddef>

#include "plimsoll/base/units.h"

namespace plimsoll::runtime {

class Arena {
 public:
  // Maps `size` bytes and touches every page, so that a machine that cannot back them says so now.
  // Raises Exit::does_not_fit when the system refuses.
  explicit Arena(Bytes size);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace plimsoll::runtime
