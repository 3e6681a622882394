#include "storage/fs/clock.h"

#include <chrono>

namespace collect::storage {
namespace {

template <class T>
uint64_t now_of() {
  const auto since = T::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

class SystemClock final : public Clock {
 public:
  uint64_t unix_ns() override { return now_of<std::chrono::system_clock>(); }
  uint64_t monotonic_ns() override { return now_of<std::chrono::steady_clock>(); }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace collect::storage
