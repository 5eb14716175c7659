#include "plimsoll/train/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "plimsoll/base/shell.h"

namespace plimsoll::train {
namespace {

TEST(RunOutput, WritesEverythingInOrder) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  std::string wanted;
  {
    RunOutput out(ends[1]);
    for (int i = 0; i < 3000; ++i) {
      out << i << '\n';
      wanted += std::to_string(i) + "\n";
    }
  }
  close(ends[1]);
  std::string got;
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    got.append(buffer.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  EXPECT_EQ(got, wanted);
}

TEST(RunOutput, NeverFailsWhenNobodyReadsOrTheDiskIsFull) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  for (const int descriptor : {ends[1], open("/dev/full", O_WRONLY | O_CLOEXEC), -1}) {
    RunOutput out(descriptor);
    for (int i = 0; i < 3000; ++i) out << "line " << i << '\n' << std::flush;
    EXPECT_TRUE(out.good());
  }
  close(ends[1]);
  std::signal(SIGPIPE, before);
}

TEST(Shell, QuotesWhatAShellWouldReadOtherwise) {
  EXPECT_EQ(shell_quoted("runs/a-1.b"), "runs/a-1.b");
  for (const std::string word : {"", "a b", "it's", "$HOME", "a;b", "*", "~", "a\nb", "\"", "`x`"}) {
    const std::string command = "printf %s " + shell_quoted(word);
    FILE* shell = popen(command.c_str(), "r");
    std::string got(100, '\0');
    got.resize(fread(got.data(), 1, got.size(), shell));
    pclose(shell);
    EXPECT_EQ(got, word);
  }
}

}  // namespace
}  // namespace plimsoll::train
