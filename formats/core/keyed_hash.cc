#include "formats/core/keyed_hash.h"

#include <random>

namespace collect {

HashKey process_hash_key() {
  static const HashKey key = [] {
    std::random_device random;
    const auto word = [&random] { return (uint64_t{random()} << 32) | random(); };
    return HashKey{word(), word() | 1};
  }();
  return key;
}

}  // namespace collect
