// Threads of ours: here alone they are started, and nothing that is thrown leaves one.
//
// A thread, memory and descriptors are what this machine may refuse at any time: to start a thread
// fails with kExhausted, to be tried again, and what `work` throws (libraries throw where the
// system refuses something) is reported and does not end the process.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/core/result.h"

namespace collect {

// Within a catch: what was thrown, as an error. kExhausted: memory, threads, descriptors.
Error thrown_error() noexcept;

// `work()`, and what it throws as an error.
template <class Work>
Status contain(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (...) {
    return thrown_error();
  }
}

// Runs `work` on a thread of this name (15 characters at most are shown). Work that throws is
// reported, and called again after kFaultPause, until it returns: what serves continues serving.
// kExhausted: the system has no thread now.
inline constexpr std::chrono::milliseconds kFaultPause{100};
Result<std::jthread> start_thread(std::string name, std::function<void()> work);

// `threads` of them at once, which end again: whether the system would start so many. The error
// says how many it did.
Status probe_threads(unsigned threads);

// Threads that do a part of what the calling thread waits for: as many of `most` as the system
// starts, so the caller does what is left. Each calls work(n) once; n is 1 and up.
class Workers {
 public:
  Workers(const std::string& name, size_t most, const std::function<void(size_t)>& work);
  ~Workers() { threads_.clear(); }  // waits for them
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t count() const { return threads_.size(); }
  // Waits for them, and throws what one of them has thrown.
  void join();

 private:
  std::mutex mutex_;
  std::exception_ptr thrown_;  // guarded by mutex_; the first
  std::vector<std::jthread> threads_;
};

// Reports, as threads do, what was contained elsewhere. `what` begins the sentence: a thread's
// name.
void report_fault(const std::string& what, const Error& error) noexcept;
// Where reports go, instead of standard error; before the first thread. Any thread calls it.
void report_faults_to(void (*report)(const std::string& what, const Error& error));

// For tests: as long as it is there, `granted` threads are started and the `refused` next ones are
// not.
class ThreadShortage {
 public:
  ThreadShortage(unsigned granted, unsigned refused);
  ~ThreadShortage();
  ThreadShortage(const ThreadShortage&) = delete;
  ThreadShortage& operator=(const ThreadShortage&) = delete;
};

}  // namespace collect
