// The elements of a tensor on the host, for a test to look at and to change: what it changed is
// written back when the object goes.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

template <class T>
class HostValues : public std::vector<T> {
 public:
  HostValues(const Executor& executor, const step::Program& program, step::TensorId id)
      : std::vector<T>(static_cast<size_t>(bytes(program.tensor(id)).count) / sizeof(T)),
        executor_(executor),
        id_(id) {
    executor.read_bytes(id, std::as_writable_bytes(std::span(*this)));
    as_read_ = *this;
  }
  HostValues(const HostValues&) = delete;
  HostValues& operator=(const HostValues&) = delete;
  ~HostValues() {
    if (std::memcmp(this->data(), as_read_.data(), this->size() * sizeof(T)) == 0) return;
    executor_.write_bytes(id_, std::as_bytes(std::span(*this)));
  }

  T* operator->() { return this->data(); }

 private:
  const Executor& executor_;
  const step::TensorId id_;
  std::vector<T> as_read_;
};

}  // namespace plimsoll::runtime
