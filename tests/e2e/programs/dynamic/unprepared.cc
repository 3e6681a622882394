// A program that no one prepared: threads that throw, catch, jump, recurse and check their own
// results. Prints what it found; exit code 0 when all is right.
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

#define NOINLINE __attribute__((noinline))

struct Guard {
  explicit Guard(uint64_t& count) : count_(count) {}
  ~Guard() { ++count_; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  uint64_t& count_;
};

NOINLINE uint64_t fibonacci(uint64_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE uint64_t choose(uint64_t n) {
  switch (n % 9) {
    case 0:
      return n + 1;
    case 1:
      return n * 3;
    case 2:
      return n ^ 0x55;
    case 3:
      return n - 7;
    case 4:
      return n << 2;
    case 5:
      return n / 3;
    case 6:
      return ~n;
    default:
      return n;
  }
}

NOINLINE uint64_t thrown(uint64_t depth, uint64_t& guards) {
  const Guard guard(guards);
  if (depth == 0) throw std::runtime_error("bottom");
  return thrown(depth - 1, guards) + 1;
}

NOINLINE uint64_t rethrown(uint64_t depth, uint64_t& guards) {
  try {
    return thrown(depth, guards);
  } catch (const std::logic_error&) {
    return 1;
  } catch (...) {
    throw std::out_of_range("again");
  }
}

NOINLINE uint64_t caught(uint64_t n, uint64_t& guards) {
  try {
    return rethrown(n % 7, guards);
  } catch (const std::out_of_range& error) {
    return std::string(error.what()).size();
  }
}

volatile bool may_return = false;

NOINLINE int jump(std::jmp_buf& buffer, int depth) {
  if (may_return) return 0;
  if (depth == 0) std::longjmp(buffer, 5);
  return jump(buffer, depth - 1) + 1;
}

NOINLINE int jumped() {
  std::jmp_buf buffer;
  const int value = setjmp(buffer);
  return value == 0 ? jump(buffer, 6) : value;
}

NOINLINE long double wide(long double x, double y) {
  return x * 1.5L + static_cast<long double>(y);
}

uint64_t work(uint64_t rounds) {
  uint64_t sum = 0;
  uint64_t guards = 0;
  std::map<std::string, uint64_t> words;
  const std::function<uint64_t(uint64_t)> called = [&sum](uint64_t n) { return choose(n) + sum; };
  for (uint64_t i = 0; i < rounds; ++i) {
    sum += caught(i, guards);
    sum += static_cast<uint64_t>(jumped());
    sum = sum * 31 + called(i);
    sum += static_cast<uint64_t>(wide(static_cast<long double>(i), 2.5));
    ++words[std::to_string(i * 7919 % 101)];
  }
  return sum + guards * 1000003 + words.size() + fibonacci(15);
}

}  // namespace

// unprepared [ROUNDS [THREADS [FILE]]]: with FILE, threads continue until there is such a file.
int main(int argc, char** argv) {
  const auto rounds = static_cast<uint64_t>(argc > 1 ? std::atoi(argv[1]) : 300);
  const size_t count = argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 6;
  const char* const file = argc > 3 ? argv[3] : nullptr;
  const uint64_t expected = work(rounds);
  std::atomic<bool> is_over{file == nullptr};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      do {
        if (work(rounds) != expected) ++wrong;
      } while (!is_over);
    });
  }
  while (!is_over) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    is_over = std::filesystem::exists(file);
  }
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) {
    std::puts("a thread computed something else");
    return 1;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(expected));
  return 0;
}
