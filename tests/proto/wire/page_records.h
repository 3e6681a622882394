// Pages for the tests of the codecs.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::wire {

using ByteVector = std::vector<uint8_t>;

// Calls and returns at random; a quarter of them have a detail number.
inline ByteVector index_records(uint32_t count, int atf_version, uint32_t seed) {
  std::mt19937_64 random(seed);
  ByteVector bytes(size_t{count} * 32);
  uint64_t time = random();
  uint64_t detail = random() % 1000;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* const at = bytes.data() + size_t{i} * 32;
    time += random() % 100;
    store_le<uint64_t>(at, time);
    store_le<uint64_t>(at + 8, (random() % 3) << 32 | (random() % 50) * 16);
    const bool linked = random() % 4 == 0;
    if (atf_version == 2) {
      store_le<uint64_t>(at + 16, linked ? detail++ : UINT64_MAX);
      at[24] = static_cast<uint8_t>(1 + random() % 2);
    } else {
      store_le<uint32_t>(at + 16, 4711);
      store_le<uint32_t>(at + 20, static_cast<uint32_t>(1 + random() % 2));
      store_le<uint32_t>(at + 24, static_cast<uint32_t>(random() % 9));
      store_le<uint32_t>(at + 28, linked ? static_cast<uint32_t>(detail++) : UINT32_MAX);
    }
  }
  return bytes;
}

// Where nothing can be read or written: the page behind `count` bytes, which lie right before it.
class GuardedBytes {
 public:
  explicit GuardedBytes(const ByteVector& bytes) : count_(bytes.size()) {
    const auto page = static_cast<size_t>(getpagesize());
    room_ = (count_ + page - 1) / page * page;
    start_ = static_cast<uint8_t*>(
        mmap(nullptr, room_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(start_ + room_, page, PROT_NONE), 0);
    if (count_ != 0) std::memcpy(start_ + room_ - count_, bytes.data(), count_);
  }
  ~GuardedBytes() { munmap(start_, room_ + static_cast<size_t>(getpagesize())); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  MutableBytes bytes() const { return {start_ + room_ - count_, count_}; }

 private:
  size_t count_;
  size_t room_ = 0;
  uint8_t* start_ = nullptr;
};

}  // namespace collect::wire
