#include "plimsoll/runtime/backend.h"

namespace plimsoll::runtime {

step::Program with_workspaces(step::Program program, const Backend& backend) {
  return add_workspaces(std::move(program), [&](const step::Program& whole, const step::Op& op) {
    return backend.workspace(whole, op);
  });
}

}  // namespace plimsoll::runtime
