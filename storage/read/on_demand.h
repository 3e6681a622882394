// Bytes that stay where they are and are made when they are read first: of files whose bytes are
// stored packed. To the readers they look like a mapped file. A fault on an address of theirs
// (SIGSEGV, SIGBUS) fills a block and the reader continues; any other fault goes to the handler
// that was there before. Blocks leave memory for others and are made again when they are read
// again, so memory is bounded however large the bytes are.
//
// The system cannot fill them: a system call on bytes that no one has read fails (EFAULT). Copy
// first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::read {

inline constexpr uint64_t kDemandBlockBytes = uint64_t{1} << 20;
// In memory at once, of everything that is on demand: few, so that they stay in the processor's
// cache, but two for each thread that may read.
inline constexpr size_t kLeastDemandBlocks = 8;
inline constexpr size_t kMostDemandBlocks = 64;

class OnDemand {
 public:
  // Makes the bytes [offset, offset + out.size()). Called by whichever threads read them, several
  // at a time; reads no bytes that are on demand. What it cannot make is zeros.
  using Fill = std::function<void(uint64_t offset, MutableBytes out)>;

  // kExhausted, kIo: this machine.
  static Result<std::unique_ptr<OnDemand>> create(uint64_t size, Fill fill);
  ~OnDemand();
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;

  Bytes bytes() const { return {at_, size_}; }
  const Fill& fill() const { return fill_; }
  // What is in memory leaves it. Any thread.
  void drop();

 private:
  friend class DemandCache;
  OnDemand(const uint8_t* at, uint64_t size, Fill fill)
      : at_(at), size_(size), fill_(std::move(fill)) {}

  const uint8_t* const at_;
  const uint64_t size_;
  const Fill fill_;
  size_t filling_ = 0;  // how many of its blocks; guarded by the cache's mutex
};

}  // namespace collect::read
