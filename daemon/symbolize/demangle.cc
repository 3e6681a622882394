#include "daemon/symbolize/demangle.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "daemon/symbolize/limits.h"

// Of libstdc++.a: 0 when the whole name was handed to the callback.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*take)(const char*, size_t, void*),
                                             void* opaque);

namespace collect::symbolize {
namespace {

enum Outcome : int { kBegin = 0, kFull = 1, kOutOfTime = 2 };

// The jump leaves frames of C code behind that hold nothing but stack, from the callback as from
// the signal handler: the demangler calls no other function that could be in the middle of
// something.
struct Run {
  sigjmp_buf back;
  volatile sig_atomic_t active = 0;
  volatile sig_atomic_t ticks = 0;
  std::array<char, kMaxSymbolNameBytes> text;
  volatile size_t size = 0;
};
Run run;

void take(const char* bytes, size_t count, void*) {
  const size_t size = run.size;
  const size_t fits = std::min(count, run.text.size() - size);
  std::memcpy(run.text.data() + size, bytes, fits);
  run.size = size + fits;
  if (fits < count) {
    run.active = 0;
    siglongjmp(run.back, kFull);
  }
}

void tick(int) {
  if (run.active == 0) return;
  run.ticks = run.ticks + 1;
  if (run.ticks < kDemangleTicks) return;
  run.active = 0;
  siglongjmp(run.back, kOutOfTime);
}

std::string cut(std::string_view text, bool is_whole) {
  if (is_whole && text.size() <= kMaxSymbolNameBytes) return std::string(text);
  return std::string(text.substr(0, kMaxSymbolNameBytes - 3)) + "...";
}

}  // namespace

std::string demangled(std::string_view linkage_name) {
  if (linkage_name.size() > kMaxMangledBytes || !linkage_name.starts_with("_Z")) {
    return cut(linkage_name, true);
  }
  std::array<char, kMaxMangledBytes + 1> mangled;
  std::memcpy(mangled.data(), linkage_name.data(), linkage_name.size());
  mangled[linkage_name.size()] = '\0';
  run.size = 0;
  run.ticks = 0;
  volatile int refused = 0;
  // Without the signal mask, which would be a system call for each name: the handler runs with
  // SA_NODEFER, so that none is blocked when it jumps.
  const int outcome = sigsetjmp(run.back, 0);
  if (outcome == kBegin) {
    run.active = 1;
    refused = __gcclibcxx_demangle_callback(mangled.data(), take, nullptr);
    run.active = 0;
  }
  if (outcome == kFull) return cut({run.text.data(), run.size}, false);
  if (outcome == kOutOfTime || refused != 0) return cut(linkage_name, true);
  return {run.text.data(), run.size};
}

DemangleClock::DemangleClock() {
  struct sigaction action{};
  action.sa_handler = tick;
  action.sa_flags = SA_NODEFER | SA_RESTART;
  ::sigaction(SIGVTALRM, &action, nullptr);
  itimerval timer{};
  timer.it_interval.tv_usec = std::chrono::microseconds(kDemangleTick).count();
  timer.it_value = timer.it_interval;
  ::setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

DemangleClock::~DemangleClock() {
  const itimerval off{};
  ::setitimer(ITIMER_VIRTUAL, &off, nullptr);
}

}  // namespace collect::symbolize
