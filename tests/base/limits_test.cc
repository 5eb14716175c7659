#include "plimsoll/base/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(Limits, GiveManyThreads) {
  require_threads(0);
  require_threads(1);
  require_threads(200);
}

TEST(Limits, OfTheSystemAreAnErrorThatNamesThem) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};  // of address space: stacks for about 100
    setrlimit(RLIMIT_AS, &limit);
    const auto is_refused = [](auto ask) {
      try {
        ask();
        return false;
      } catch (const Error& error) {
        return error.code() == Exit::does_not_fit &&
               error.advice().find("ulimit -v") != std::string::npos;
      }
    };
    const bool refused = is_refused([] { require_threads(4000); }) &&
                         is_refused([] { require_address_space({int64_t{1} << 30}); });
    require_address_space({1 << 20});
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace plimsoll
