// Many threads. `threads MODE`:
//   short     300 threads, one after the other in tens, each with a little work
//   many      200 threads that all live at the same time
//   small     40 threads on the smallest stack that the system allows
//   late      main returns while other threads still call traced functions
//   pthread_exit  main ends its own thread; the last thread ends the process
//   thrown    exceptions through traced frames, on several threads
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

uint64_t fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

std::atomic<uint64_t> sum{0};

int short_lived() {
  for (int batch = 0; batch < 30; ++batch) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; ++i) threads.emplace_back([i] { sum += fibonacci(10 + i % 3); });
    for (std::thread& thread : threads) thread.join();
  }
  std::printf("300 threads: %llu\n", static_cast<unsigned long long>(sum.load()));
  return 0;
}

int all_at_once() {
  constexpr int kThreads = 200;
  std::atomic<int> there{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&there] {
      sum += fibonacci(8);
      there++;
      while (there < kThreads) std::this_thread::yield();
      sum += fibonacci(12);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("200 threads at once: %llu\n", static_cast<unsigned long long>(sum.load()));
  return 0;
}

void* small_stack_work(void*) {
  sum += fibonacci(12);
  return nullptr;
}

int small_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Of PTHREAD_STACK_MIN, 16 KiB, libc's own thread data takes its part too.
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  for (int i = 0; i < 40; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, small_stack_work, nullptr) != 0) return 4;
    pthread_join(thread, nullptr);
  }
  pthread_attr_destroy(&attributes);
  std::printf("40 small stacks: %llu\n", static_cast<unsigned long long>(sum.load()));
  return 0;
}

int late() {
  std::atomic<int>& running = *new std::atomic<int>(0);
  for (int i = 0; i < 4; ++i) {
    std::thread([&running] {
      running++;
      for (;;) sum += fibonacci(10);
    }).detach();
  }
  while (running < 4) std::this_thread::yield();
  std::printf("main returns, four threads run\n");
  return 7;
}

[[noreturn]] void leave_by_pthread_exit() {
  std::thread([] {
    for (int i = 0; i < 100; ++i) sum += fibonacci(10);
    std::printf("the last thread: %llu\n", static_cast<unsigned long long>(sum.load()));
  }).detach();
  pthread_exit(nullptr);
}

uint64_t throw_at(unsigned depth) {
  if (depth == 0) throw std::runtime_error("bottom");
  return throw_at(depth - 1) + 1;
}

int exceptions() {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (unsigned n = 0; n < 500; ++n) {
        try {
          sum += throw_at(n % 20 + i);
        } catch (const std::runtime_error& error) {
          sum += std::strlen(error.what());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("caught: %llu\n", static_cast<unsigned long long>(sum.load()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "short";
  if (std::strcmp(mode, "short") == 0) return short_lived();
  if (std::strcmp(mode, "many") == 0) return all_at_once();
  if (std::strcmp(mode, "small") == 0) return small_stacks();
  if (std::strcmp(mode, "late") == 0) return late();
  if (std::strcmp(mode, "pthread_exit") == 0) leave_by_pthread_exit();
  if (std::strcmp(mode, "thrown") == 0) return exceptions();
  return 2;
}
