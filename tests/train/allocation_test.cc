// After the plan is committed to, the step loop allocates nothing large: malloc and its relatives
// are replaced here by functions that count, for the whole test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "plimsoll/checkpoint/writer.h"
#include "plimsoll/train/trainer.h"
#include "plimsoll/train/training_state.h"
#include "tests/data/files.h"
#include "tests/runtime/test_backend.h"

namespace {

constexpr size_t large = 64 * 1024;
std::atomic<bool> watching = false;
std::atomic<int64_t> large_allocations = 0;
std::atomic<size_t> largest = 0;

void count(size_t size) {
  if (!watching) return;
  size_t seen = largest;
  while (size > seen && !largest.compare_exchange_weak(seen, size)) {
  }
  if (size > large) ++large_allocations;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer replaces them itself

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count(size);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* pointer, size_t size) {
  count(size);
  return __libc_realloc(pointer, size);
}
void* memalign(size_t alignment, size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** pointer, size_t alignment, size_t size) {
  count(size);
  *pointer = __libc_memalign(alignment, size);
  return *pointer == nullptr ? 12 : 0;
}

}  // extern "C"

namespace plimsoll::train {
namespace {

TEST(Allocations, OfTheHookAreSeen) {
  largest = 0;
  watching = true;
  std::vector<char>* kept = new std::vector<char>(large + 1);
  watching = false;
  EXPECT_GE(largest, large + 1) << kept->size();
  delete kept;
}

// Large enough that any temporary of a step (an activation, a packed operand) is above 64 KiB.
TEST(Allocations, OfAStepWithItsCheckpointAreSmall) {
  const data::Folder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += fmt::format("{} ", i);
  for (const auto family : {model::Family::gpt2, model::Family::llama}) {
    for (const auto precision : {step::Precision::fp32, step::Precision::bf16}) {
      config::Config config;
      config.model = {.family = family, .layers = 2, .hidden = 192, .heads = 3};
      config.step = {
          .precision = precision, .micro_batch = 2, .global_batch = 4, .sequence_length = 256};
      config.data.train = folder.write("corpus.txt", text);
      config.train.eval_sequences = 3;
      config = config::resolve(config);
      const auto backend = runtime::make_test_backend(2);
      const data::Dataset dataset =
          data::open_dataset({.train = config.data.train,
                              .validation_fraction = 0.1,
                              .sequence_length = config.step.sequence_length,
                              .vocabulary = config.model.vocab});
      const PlannedRun run = plan_run(config, *backend);
      Trainer trainer(run, *backend, dataset);
      trainer.start_fresh();
      std::vector<std::byte> host(
          runtime::guarded() ? static_cast<size_t>(snapshot_bytes(run.step).count) : 0);
      const std::span<std::byte> snapshot =
          runtime::guarded() ? host : trainer.executor().host_view(run.snapshot);
      checkpoint::CheckpointWriter writer(
          folder / "checkpoints", 1, checkpoint_shards(run.step, trainer.executor()), snapshot);
      large_allocations = 0;
      largest = 0;
      watching = true;
      for (int i = 0; i < 3; ++i) {
        trainer.step();
        trainer.evaluate();
        writer.start({.step = trainer.steps_done(), .samples = trainer.samples_consumed()});
      }
      writer.finish();
      watching = false;
      EXPECT_EQ(large_allocations, 0) << "the largest was " << largest << " bytes";
    }
  }
}

}  // namespace
}  // namespace plimsoll::train

#endif
