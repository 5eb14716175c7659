#include "plimsoll/cli/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

namespace plimsoll::cli {

namespace {

constexpr rlim_t kLeastStack = rlim_t{1} << 20;
constexpr rlim_t kStack = rlim_t{8} << 20;

}  // namespace

void open_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number, so this one; the wrong way round, so that its use fails.
    [[maybe_unused]] const int opened =
        ::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void require_stack() {
  rlimit limit;
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack) return;
  const rlimit wanted = {std::min(limit.rlim_max, kStack), limit.rlim_max};
  if (wanted.rlim_cur < kLeastStack || ::setrlimit(RLIMIT_STACK, &wanted) != 0) {
    throw Error(Exit::does_not_fit,
                fmt::format("A stack of {} KiB is too small.", limit.rlim_cur / 1024),
                "Raise the limit: `ulimit -s 8192`.");
  }
  // Threads take their size from the limit as it was when the process began.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, wanted.rlim_cur);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {Exit::does_not_fit, "The system refused memory.",
            "Free memory on this machine, raise the limit on address space (`ulimit -v`), or make "
            "the step smaller."};
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return {
          Exit::does_not_fit, "The system refused another thread.",
          "Lower train.threads or --threads, or raise the limits on processes (`ulimit -u`) and "
          "address space (`ulimit -v`)."};
    }
    return {Exit::bug, fmt::format("Internal error: {}.", error.what()),
            "This is a bug in Plimsoll; please report it with the command and the config."};
  } catch (const std::exception& error) {
    return {Exit::bug, fmt::format("Internal error: {}.", error.what()),
            "This is a bug in Plimsoll; please report it with the command and the config."};
  }
}

int report(const Error& error) {
  std::cerr << error.message() << '\n';
  return static_cast<int>(error.code());
}

void report_lost_exceptions() {
  std::set_terminate([] {
    if (std::current_exception()) ::_exit(report(current_error()));
    std::abort();
  });
}

bool output_arrived() {
  std::cout.flush();
  return std::cout.good() && std::ferror(stdout) == 0;
}

}  // namespace plimsoll::cli
