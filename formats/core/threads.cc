#include "formats/core/threads.h"

#include <fmt/core.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

namespace collect {
namespace {

constexpr size_t kMaxThreadName = 15;  // Linux

void print_fault(const std::string& what, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), to_string(error).c_str());
}

std::atomic<void (*)(const std::string&, const Error&)> g_report{&print_fault};

// Counts of ThreadShortage: starts until it begins, and until it ends.
std::atomic<unsigned> g_granted{0};
std::atomic<unsigned> g_refused{0};

bool take_one(std::atomic<unsigned>& count) {
  unsigned before = count.load();
  while (before != 0 && !count.compare_exchange_weak(before, before - 1)) {
  }
  return before != 0;
}

bool is_short_of_threads() {
  if (g_refused.load() == 0) return false;
  return !take_one(g_granted) && take_one(g_refused);
}

Error no_thread(int error_number) {
  return {Code::kExhausted, fmt::format("the system starts no further thread ({}): a limit of "
                                        "processes (ulimit -u, TasksMax=, pids.max), or memory",
                                        std::generic_category().message(error_number))};
}

// The threads of a probe wait here for each other.
class Gate {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;  // guarded by mutex_
};

}  // namespace

Error thrown_error() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kExhausted, "out of memory"};  // short enough to need none
  } catch (const std::system_error& error) {
    // EAGAIN: of a thread that was not started.
    const bool is_passing = error.code() == std::errc::resource_unavailable_try_again;
    // Of other categories (streams, resolvers) the number is no errno.
    const bool is_errno = error.code().category() == std::generic_category() ||
                          error.code().category() == std::system_category();
    try {
      if (is_passing) return {Code::kExhausted, error.what()};
      return {is_errno ? errno_error(error.code().value(), "").code : Code::kIo, error.what()};
    } catch (...) {
      return {Code::kExhausted, "out of memory"};
    }
  } catch (const std::exception& error) {
    try {
      return {Code::kIo, error.what()};
    } catch (...) {
      return {Code::kExhausted, "out of memory"};
    }
  } catch (...) {
    return {Code::kIo, "unknown fault"};
  }
}

void report_fault(const std::string& what, const Error& error) noexcept {
  try {
    g_report.load()(what, error);
  } catch (...) {  // a report that cannot be made is not worth the process
    std::fputs("a fault could not be reported: out of memory\n", stderr);
  }
}

void report_faults_to(void (*report)(const std::string& what, const Error& error)) {
  g_report = report;
}

Result<std::jthread> start_thread(std::string name, std::function<void()> work) {
  if (is_short_of_threads()) return no_thread(EAGAIN);
  if (name.size() > kMaxThreadName) name.resize(kMaxThreadName);
  try {
    std::jthread thread([name, work = std::move(work)] {
      for (;;) {
        const Status done = contain(work);
        if (done.ok()) return;
        report_fault(name, done.error());
        std::this_thread::sleep_for(kFaultPause);
      }
    });
    (void)pthread_setname_np(thread.native_handle(), name.c_str());
    return thread;
  } catch (const std::system_error& error) {
    return no_thread(error.code().value());
  } catch (const std::bad_alloc&) {
    return no_thread(ENOMEM);
  }
}

Status probe_threads(unsigned threads) {
  Gate gate;
  std::vector<std::jthread> started;
  started.reserve(threads);
  Status outcome;
  while (outcome.ok() && started.size() < threads) {
    auto thread = start_thread("probe", [&gate] { gate.wait(); });
    if (thread.ok()) {
      started.push_back(std::move(*thread));
    } else {
      outcome = Error{thread.code(), fmt::format("{} of {} threads can be started: {}",
                                                 started.size(), threads, thread.error().message)};
    }
  }
  gate.open();
  return outcome;
}

Workers::Workers(const std::string& name, size_t most, const std::function<void(size_t)>& work) {
  threads_.reserve(most);
  while (threads_.size() < most) {
    auto started = start_thread(name, [this, work, number = threads_.size() + 1] {
      try {
        work(number);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
      }
    });
    if (!started.ok()) return;  // fewer do it too
    threads_.push_back(std::move(*started));
  }
}

void Workers::join() {
  threads_.clear();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

ThreadShortage::ThreadShortage(unsigned granted, unsigned refused) {
  g_granted = granted;
  g_refused = refused;
}

ThreadShortage::~ThreadShortage() {
  g_granted = 0;
  g_refused = 0;
}

}  // namespace collect
