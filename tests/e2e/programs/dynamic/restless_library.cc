// What restless.cc loads and unloads.
#include <cstdint>

namespace {

__attribute__((noinline)) uint64_t tripled(uint64_t n) {
  volatile uint64_t sum = n;
  for (int i = 0; i < 2; ++i) sum = sum + n;
  return sum;
}

}  // namespace

extern "C" uint64_t restless_library_work(uint64_t n) {
  return tripled(n) + tripled(1);
}
