// A program built with -fxray-instrument, with the shared library xray_library and the plugin
// xray_plugin. `xray counted|registers|shortcuts|busy [PLUGIN|PIPE]`.
//
// The counted build has -finstrument-functions too: its hooks are the independent counter's, which
// counts and passes nothing on.
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

extern "C" uint64_t library_work(uint64_t rounds);

#define KEPT extern "C" __attribute__((noinline))

KEPT uint64_t leaf(uint64_t value) {
  asm volatile("" : "+r"(value));
  return value * 3 + 1;
}

KEPT uint64_t recursive(uint64_t depth) {
  return depth == 0 ? leaf(depth) : recursive(depth - 1) + leaf(depth);
}

KEPT uint64_t eight_words(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                          uint64_t g, uint64_t h) {
  asm volatile("");
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

struct TwoWords {
  uint64_t first;
  uint64_t second;
};
KEPT TwoWords two_words(uint64_t a) {
  asm volatile("" : "+r"(a));
  return {~a, a ^ 0x5555555555555555};
}

KEPT double eight_numbers(double a, double b, double c, double d, double e, double f, double g,
                          double h) {
  asm volatile("");
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

#if defined(__x86_64__)
using Wide = float __attribute__((vector_size(32)));
KEPT __attribute__((target("avx"))) Wide wide_sum(Wide a, Wide b) {
  asm volatile("");
  return a + b;
}
KEPT __attribute__((target("avx"))) bool wide_is_kept() {
  const Wide sum = wide_sum(Wide{1, 2, 3, 4, 5, 6, 7, 8}, Wide{8, 7, 6, 5, 4, 3, 2, 1});
  for (int i = 0; i < 8; ++i) {
    if (sum[i] != 9) return false;
  }
  return true;
}
using Widest = float __attribute__((vector_size(64)));
KEPT __attribute__((target("avx512f"))) Widest widest_sum(Widest a, Widest b) {
  asm volatile("");
  return a + b;
}
KEPT __attribute__((target("avx512f"))) bool widest_is_kept() {
  Widest numbers{};
  for (int i = 0; i < 16; ++i) numbers[i] = static_cast<float>(i);
  const Widest sum = widest_sum(numbers, 16 - numbers);
  for (int i = 0; i < 16; ++i) {
    if (sum[i] != 16) return false;
  }
  return true;
}
KEPT long double long_half(long double a) {
  asm volatile("");
  return a / 2;
}
#endif

KEPT uint64_t tail_target(uint64_t a, uint64_t b) {
  asm volatile("" : "+r"(a));
  return a ^ b;
}
// Through a pointer that the compiler does not know: a jump to what a register holds.
uint64_t (*volatile tail_pointer)(uint64_t, uint64_t) = tail_target;
KEPT uint64_t tail_caller(uint64_t a, uint64_t b) {
  return tail_pointer(b, a);
}

KEPT int add_all(int count, ...) {
  __builtin_va_list more;
  __builtin_va_start(more, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += __builtin_va_arg(more, double);
  __builtin_va_end(more);
  return static_cast<int>(sum);
}

// Compilers object to a function that never returns.
volatile bool never = false;

KEPT uint64_t thrower(uint64_t depth) {
  if (never) return 0;
  if (depth == 0) throw std::runtime_error("out");
  return thrower(depth - 1) + leaf(depth);
}
KEPT uint64_t catcher(uint64_t depth) {
  try {
    return thrower(depth);
  } catch (const std::runtime_error&) {
    return leaf(depth);
  }
}

jmp_buf jump_back;
KEPT uint64_t jumper(uint64_t depth) {
  if (never) return 0;
  if (depth == 0) longjmp(jump_back, 1);
  return jumper(depth - 1) + leaf(depth);
}
KEPT uint64_t jump_catcher(uint64_t depth) {
  return setjmp(jump_back) == 0 ? jumper(depth) : leaf(depth);
}

KEPT uint64_t open_plugin(const char* path, uint64_t rounds) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 0;
  }
  void* symbol = dlsym(library, "plugin_work");
  uint64_t (*work)(uint64_t) = nullptr;
  std::memcpy(reinterpret_cast<void*>(&work), &symbol, sizeof symbol);
  const uint64_t value = work(rounds);
  dlclose(library);
  return value;
}

KEPT uint64_t thread_work(uint64_t rounds) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < rounds; ++i) value += leaf(i) + recursive(i % 9);
  return value;
}

KEPT uint64_t counted(const char* plugin) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) threads.emplace_back([i] { thread_work(20'000 + i); });
  uint64_t value = 0;
  for (uint64_t i = 0; i < 5; ++i) value += open_plugin(plugin, 100 + i);
  value += library_work(5000) + tail_caller(1, 2);
  for (std::thread& thread : threads) thread.join();
  return value;
}

KEPT uint64_t registers() {
  uint64_t value = eight_words(0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x7777, 0x8888);
  value += two_words(0x0123456789abcdef).second;
  value += tail_caller(0xAAAA, 0xBBBB);
  const double numbers = eight_numbers(1, 2, 3, 4, 5, 6, 7, 8);
#if defined(__x86_64__)
  const bool wide = (!__builtin_cpu_supports("avx") || wide_is_kept()) &&
                    (!__builtin_cpu_supports("avx512f") || widest_is_kept()) &&
                    long_half(3) == 1.5L;
#else
  const bool wide = true;
#endif
  const int sum = add_all(3, 1.0, 2.0, 3.0);
  std::printf("%llx %.1f %d %d\n", static_cast<unsigned long long>(value), numbers, wide, sum);
  return value;
}

// Calls until `path`, a pipe, ends. For each byte in it, says so when every thread has called on
// for a while.
KEPT uint64_t busy(const char* path) {
  constexpr uint64_t kWhile = 1000;
  static std::atomic<bool> done{false};
  static std::atomic<uint64_t> rounds[3] = {};
  std::vector<std::thread> threads;
  for (std::atomic<uint64_t>& mine : rounds) {
    threads.emplace_back([&mine] {
      while (!done.load()) {
        if (leaf(41) != 124 || recursive(3) != 22) std::printf("wrong\n");
        ++mine;
      }
    });
  }
  std::printf("at work\n");
  std::fflush(stdout);
  const int input = open(path, O_RDONLY | O_CLOEXEC);
  char byte;
  while (read(input, &byte, 1) > 0) {
    for (std::atomic<uint64_t>& of_thread : rounds) {
      const uint64_t wanted = of_thread.load() + kWhile;
      while (of_thread.load() < wanted) usleep(1000);
    }
    std::printf("on\n");
    std::fflush(stdout);
  }
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  std::printf("done\n");
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "counted") == 0 && argc > 2) return counted(argv[2]) == 0 ? 1 : 0;
  if (std::strcmp(what, "registers") == 0) return registers() == 0 ? 1 : 0;
  if (std::strcmp(what, "busy") == 0 && argc > 2) return busy(argv[2]) == 0 ? 0 : 1;
  if (std::strcmp(what, "shortcuts") == 0) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < 100; ++i) value += catcher(i % 7) + jump_catcher(i % 5);
    return value == 0 ? 1 : 0;
  }
  return 2;
}
