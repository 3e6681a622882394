// Time as a parameter, so that tests decide what it is.
#pragma once

#include <cstdint>

namespace collect::storage {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t unix_ns() = 0;       // time of day
  virtual uint64_t monotonic_ns() = 0;  // for intervals
};

Clock& system_clock();  // stateless, thread-safe

}  // namespace collect::storage
