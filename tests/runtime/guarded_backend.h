// The CPU as a device whose memory the host cannot touch: the pages of the arena may be read and
// written only while a launch or a copy of the back end runs. Whatever dereferences device memory
// beside them dies of SIGSEGV where it does. Queues and events are the CPU's: work has ended when
// its call returns.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/backend.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"

namespace plimsoll::runtime {

class GuardedBackend : public Backend {
 public:
  explicit GuardedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string description() const override { return inner_->description(); }
  Bytes workspace(const step::Program& program, const step::Op& op) const override {
    return inner_->workspace(program, op);
  }
  Capacity capacity() const override { return inner_->capacity(); }

  Launch prepare(const step::Op& op, const Bindings& bindings) const override {
    const std::shared_ptr<Range> range = range_of(bindings);
    return [range, launch = inner_->prepare(op, bindings)](Queue queue) {
      const Opened opened(*range);
      launch(queue);
    };
  }

  Memory allocate(Bytes size) const override {
    const auto length = round_up(size, page).count;
    void* pages =
        mmap(nullptr, static_cast<size_t>(length), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(pages != MAP_FAILED, "mmap failed");
    auto* data = static_cast<std::byte*>(pages);
    const auto range = std::make_shared<Range>(Range{data, length});
    ranges_.push_back(range);
    return {data, [length](std::byte* d) { munmap(d, static_cast<size_t>(length)); }};
  }
  bool shares_host_memory() const override { return false; }

  Queue queue(step::Stream stream) const override { return inner_->queue(stream); }
  void copy_to_device(Queue q, std::byte* to, std::span<const std::byte> from) const override {
    const Opened opened(*range_of(to));
    inner_->copy_to_device(q, to, from);
  }
  void copy_to_host(Queue q, std::span<std::byte> to, const std::byte* from) const override {
    const Opened opened(*range_of(from));
    inner_->copy_to_host(q, to, from);
  }
  void copy(Queue q, std::byte* to, const std::byte* from, Bytes size) const override {
    const Opened opened(*range_of(to)), source(*range_of(from));
    inner_->copy(q, to, from, size);
  }
  void fill(Queue q, std::byte* to, std::byte value, Bytes size) const override {
    const Opened opened(*range_of(to));
    inner_->fill(q, to, value, size);
  }
  Event make_event() const override { return inner_->make_event(); }
  void record(Queue q, const Event& event) const override { inner_->record(q, event); }
  void wait(Queue q, const Event& event) const override { inner_->wait(q, event); }
  void synchronize(Queue q) const override { inner_->synchronize(q); }

 private:
  static constexpr int64_t page = 4096;

  struct Range {
    std::byte* data = nullptr;
    int64_t size = 0;
    int opened = 0;
  };

  // Open while it lives.
  class Opened {
   public:
    explicit Opened(Range& range) : range_(range) {
      if (range_.opened++ == 0) protect(PROT_READ | PROT_WRITE);
    }
    ~Opened() {
      if (--range_.opened == 0) protect(PROT_NONE);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    void protect(int rights) const {
      check(mprotect(range_.data, static_cast<size_t>(range_.size), rights) == 0,
            "mprotect failed");
    }
    Range& range_;
  };

  // The allocation an address lies in; the newest, where an old one's addresses were used again.
  std::shared_ptr<Range> range_of(const std::byte* address) const {
    for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) {
      if ((*range)->data <= address && address < (*range)->data + (*range)->size) return *range;
    }
    check(false, "an address that this device did not allocate");
    return nullptr;
  }
  std::shared_ptr<Range> range_of(const Bindings& bindings) const {
    for (const auto* views : {&bindings.outputs, &bindings.inputs}) {
      for (const View& view : *views) return range_of(view.data);
    }
    check(false, "an op without operands");
    return nullptr;
  }

  const std::unique_ptr<Backend> inner_;
  mutable std::vector<std::shared_ptr<Range>> ranges_;
};

}  // namespace plimsoll::runtime
