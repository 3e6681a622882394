// One thread: quick() once a millisecond, at every fiftieth slow(), which takes 20 ms, and
// thrower(), which an exception leaves. Its counter "mood" goes from 0 to 49, again and again.
// `moods MS`: for so many milliseconds of its clock.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

extern "C" [[gnu::weak]] void collect_counter(const char* name, int64_t value);

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
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(std::strtoull(argv[1], nullptr, 10));
  while (Clock::now() < end) {
    quick();
    if (collect_counter != nullptr) collect_counter("mood", static_cast<int64_t>(rounds % 50));
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
