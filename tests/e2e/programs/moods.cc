// One thread: quick() once a millisecond, at every fiftieth slow(), which takes 20 ms, and
// thrower(), which an exception leaves. Its counter "mood" goes from 0 to 49, again and again.
// `moods MS`: for so many milliseconds of its clock.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace {

volatile unsigned long rounds;

__attribute__((noinline)) void quick() {
  rounds = rounds + 1;
}

__attribute__((noinline)) void slow() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

__attribute__((noinline)) void thrower() {
  quick();
  throw std::runtime_error("as often as this is said");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  auto* const set_counter =
      reinterpret_cast<void (*)(const char*, int64_t)>(::dlsym(RTLD_DEFAULT, "collect_counter"));
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(std::strtoull(argv[1], nullptr, 10));
  while (Clock::now() < end) {
    quick();
    if (set_counter != nullptr) set_counter("mood", static_cast<int64_t>(rounds % 50));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (rounds % 50 != 0) continue;
    slow();
    try {
      thrower();
    } catch (const std::runtime_error&) {
    }
  }
  std::printf("%lu rounds\n", static_cast<unsigned long>(rounds));
}
