// A safetensors file.
#include "plimsoll/checkpoint/safetensors.h"

#include "tests/fuzz/target.h"

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_value_or_error([&] {
    const MemoryFile memory(text_of(data, size));
    const checkpoint::SafetensorsFile file(memory.path());
    size_t bytes = 0;
    for (const checkpoint::StoredTensor& tensor : file.tensors()) {
      int64_t needed = checkpoint::bytes_per_element(tensor.dtype);
      for (const int64_t dimension : tensor.shape) needed *= dimension;
      require(static_cast<int64_t>(tensor.bytes.size()) == needed, "a tensor is not of its shape");
      require(file.find(tensor.name) != nullptr, "a tensor is not found by its name");
      bytes += tensor.bytes.size();
    }
    require(bytes <= size, "the tensors are larger than the file");
  });
  return 0;
}
