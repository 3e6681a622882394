// A hash for tables whose keys a peer chooses. It depends on 128 random bits that are drawn once
// per process, so no one outside can pick keys that share a slot. (absl::Hash is seeded by an
// address alone, and mixes an integer once: where addresses are known, so are its collisions.)
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect {

struct HashKey {
  uint64_t add = 0;
  uint64_t multiply = 1;  // odd
};

// Drawn at the first call; the same for the whole life of the process. Thread-safe.
HashKey process_hash_key();

__extension__ using HashProduct = unsigned __int128;

// Both halves of the product: every bit of the value reaches every bit of the hash.
inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  const HashProduct product = static_cast<HashProduct>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t keyed_hash(HashKey key, uint64_t value) {
  const uint64_t once = fold_multiply(value ^ key.add, key.multiply);
  return fold_multiply(once ^ key.multiply, key.add | 1);
}

// For the standard containers.
struct KeyedHash {
  HashKey key = process_hash_key();
  size_t operator()(uint64_t value) const { return static_cast<size_t>(keyed_hash(key, value)); }
};

}  // namespace collect
