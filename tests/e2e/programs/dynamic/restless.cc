// A program that no one prepared and that does not stay as it is: it loads and unloads a library,
// forks, replaces itself or ends, while its threads check their own results. Exit code 0: all of
// them were right.
//
//     restless load FILE LIBRARY   until FILE exists
//     restless fork FILE           until FILE exists
//     restless exec COUNT          that many times, each time after some milliseconds
//     restless exit MILLISECONDS
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

#define NOINLINE __attribute__((noinline))

NOINLINE uint64_t mixed(uint64_t n, uint64_t seed) {
  return (n * 0x9E3779B97F4A7C15ull ^ seed) + (n >> 7);
}

NOINLINE uint64_t folded(const std::string& words, uint64_t seed) {
  for (const char letter : words) seed = mixed(static_cast<uint64_t>(letter), seed);
  return seed;
}

NOINLINE uint64_t work() {
  uint64_t sum = 17;
  for (uint64_t i = 0; i < 2000; ++i) sum = folded(std::to_string(i), mixed(i, sum));
  return sum;
}

const uint64_t expected = work();
std::atomic<bool> is_over{false};
std::atomic<bool> is_wrong{false};

void check() {
  if (work() != expected) is_wrong = true;
}

void load(const char* library) {
  void* const plugin = dlopen(library, RTLD_NOW);
  const auto function =
      plugin == nullptr
          ? nullptr
          : reinterpret_cast<uint64_t (*)(uint64_t)>(dlsym(plugin, "restless_library_work"));
  for (uint64_t i = 0; function != nullptr && i < 50; ++i) {
    if (function(i) != 3 * i + 3) is_wrong = true;
  }
  if (function == nullptr || dlclose(plugin) != 0) is_wrong = true;
}

void fork_once() {
  const pid_t child = fork();
  if (child == 0) _exit(work() == expected ? 7 : 8);
  int status = 0;
  const bool is_right = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                        WEXITSTATUS(status) == 7;
  if (!is_right) is_wrong = true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[1];
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      while (!is_over) check();
    });
  }
  if (mode == "exec") {
    const int count = std::atoi(argv[2]);
    std::this_thread::sleep_for(milliseconds(1 + count * 7 % 150));
    if (count > 0 && !is_wrong) {
      const std::string left = std::to_string(count - 1);
      execl("/proc/self/exe", argv[0], "exec", left.c_str(), nullptr);
      return 3;
    }
  } else if (mode == "exit") {
    std::this_thread::sleep_for(milliseconds(std::atoi(argv[2])));
  } else {
    while (!std::filesystem::exists(argv[2])) {
      if (mode == "load") load(argv[3]);
      if (mode == "fork") fork_once();
    }
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  std::puts(is_wrong ? "wrong" : "right");
  return is_wrong ? 1 : 0;
}
