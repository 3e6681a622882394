// Memory runs out. `memory MODE`:
//   limit   takes what RLIMIT_AS leaves, works and makes threads meanwhile, gives it back
//   shm     fills /dev/shm (the caller mounts a small one for it), works, takes the file away
//   early   the limit holds from the first instruction of main, with threads that start under it
// Prints what does not depend on how much there was.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

uint64_t fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

size_t address_space_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void limit_address_space(size_t more) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = address_space_bytes() + more;
  setrlimit(RLIMIT_AS, &limit);
}

uint64_t threads_work(int count) {
  std::vector<std::thread> threads;
  std::vector<uint64_t> results(static_cast<size_t>(count));
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] { results[i] = fibonacci(15); });
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    threads[i].join();
    sum += results[i];
  }
  return sum;
}

int take_all() {
  limit_address_space(96 << 20);
  std::thread sleeper([] { (void)fibonacci(5); });
  sleeper.join();
  std::vector<void*> taken;
  taken.reserve(100000);
  for (size_t bytes = 16 << 20; bytes >= 4096; bytes /= 2) {
    for (;;) {
      void* block =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (block == MAP_FAILED) break;
      taken.push_back(block);
      taken.push_back(reinterpret_cast<void*>(bytes));
    }
  }
  const bool exhausted = errno == ENOMEM;
  const uint64_t value = fibonacci(20);
  for (size_t i = 0; i < taken.size(); i += 2)
    munmap(taken[i], reinterpret_cast<size_t>(taken[i + 1]));
  std::printf("memory ran out: %s; worked: %llu; threads after: %llu\n", exhausted ? "yes" : "no",
              static_cast<unsigned long long>(value),
              static_cast<unsigned long long>(threads_work(3)));
  return exhausted ? 0 : 1;
}

int fill_shm() {
  const char* path = "/dev/shm/filled_by_test";
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return 3;
  const std::string block(65536, 'x');
  while (write(file, block.data(), block.size()) > 0) {
  }
  const bool full = errno == ENOSPC;
  const uint64_t value = fibonacci(20) + threads_work(8);
  close(file);
  unlink(path);
  std::printf("/dev/shm is full: %s; worked: %llu\n", full ? "yes" : "no",
              static_cast<unsigned long long>(value));
  return full ? 0 : 1;
}

int early() {
  limit_address_space(64 << 20);
  // Stacks of 8 MiB each: fewer at a time than the limit allows.
  uint64_t sum = 0;
  for (int i = 0; i < 20; ++i) sum += threads_work(3);
  std::printf("60 threads under a limit: %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "limit";
  if (std::strcmp(mode, "limit") == 0) return take_all();
  if (std::strcmp(mode, "shm") == 0) return fill_shm();
  if (std::strcmp(mode, "early") == 0) return early();
  return 2;
}
