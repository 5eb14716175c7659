// Gives a fuzz target every file of a folder: replay SEEDS
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "plimsoll/base/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const std::string input = plimsoll::read_file(entry.path());
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // the last name is the one that failed
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++count;
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
