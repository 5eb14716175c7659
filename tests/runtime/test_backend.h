// The back end of tests that run steps. CTest runs their programs twice: on the CPU, and, with
// PLIMSOLL_TEST_BACKEND=guarded, on a device whose memory the host cannot touch.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

#include "tests/runtime/guarded_backend.h"

namespace plimsoll::runtime {

inline bool guarded() {
  const char* choice = std::getenv("PLIMSOLL_TEST_BACKEND");
  return choice != nullptr && std::string_view(choice) == "guarded";
}

inline std::unique_ptr<Backend> make_test_backend(int threads,
                                                  std::optional<cpu::Bf16Kernel> bf16 = {}) {
  std::unique_ptr<Backend> backend = cpu::make_cpu_backend(threads, bf16);
  if (!guarded()) return backend;
  return std::make_unique<GuardedBackend>(std::move(backend));
}

}  // namespace plimsoll::runtime
