// The function ids that occur in a session, gathered while its pages are stored. Bounded: 16 MiB
// for any pages. The ids are a peer's, so they are hashed with a key.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/keyed_hash.h"

namespace collect::storage {

inline constexpr size_t kMaxFunctionIds = 1u << 20;  // further ones are not named

class FunctionSet {
 public:
  FunctionSet() : slots_(1u << 8) {
    recent_[0] = 1;  // 0 is empty elsewhere; id 0 belongs here, and id 1 does not
  }

  void add_events(Bytes events);  // whole index events, either version
  void add(uint64_t function_id);

  size_t size() const { return count_ + (has_zero_ ? 1 : 0); }
  bool overflowed() const { return overflowed_; }
  std::vector<uint64_t> sorted() const;

 private:
  bool insert(std::vector<uint64_t>& slots, uint64_t id);
  void grow();

  const HashKey key_ = process_hash_key();
  // A program calls the same few functions over and over: the ids seen last answer for almost all
  // events, without a look at the big table.
  std::array<uint64_t, 1024> recent_{};
  std::vector<uint64_t> slots_;  // open addressing, power of two, 0 is empty
  size_t count_ = 0;
  bool has_zero_ = false;
  bool overflowed_ = false;
};

}  // namespace collect::storage
