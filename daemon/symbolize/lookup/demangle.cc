#include "daemon/symbolize/lookup/demangle.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "daemon/symbolize/limits.h"

// In libstdc++.a: 0 when the whole name was handed to the callback.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*take)(const char*, size_t, void*),
                                             void* opaque);

// In libiberty.a: other than 0 when the whole name was handed to the callback. Allocates for names
// in other scripts.
extern "C" int rust_demangle_callback(const char* mangled, int options,
                                      void (*take)(const char*, size_t, void*), void* opaque);

namespace collect::symbolize {
namespace {

enum Outcome : int { kBegin = 0, kFull = 1, kOutOfTime = 2 };

// The jump leaves frames of C code behind that hold nothing but stack, from the callback as from
// the signal handler: the demangler of C++ calls no other function that could be in the middle of
// something. That of Rust may be within malloc, so the handler leaves it alone, and the callback
// looks at the time: every turn of it hands out text.
struct Run {
  sigjmp_buf back;
  volatile sig_atomic_t active = 0;  // of C++
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
  if (run.ticks >= kDemangleTicks) {
    run.active = 0;
    siglongjmp(run.back, kOutOfTime);
  }
}

void tick(int) {
  run.ticks = run.ticks + 1;
  if (run.active == 0 || run.ticks < kDemangleTicks) return;
  run.active = 0;
  siglongjmp(run.back, kOutOfTime);
}

enum class Language : uint8_t { kOther, kCxx, kRust, kRustOrCxx };

// Rust's older scheme is C++'s, with a hash of 16 digits at the end.
Language language_of(std::string_view linkage_name) {
  if (linkage_name.starts_with("_R")) return Language::kRust;
  if (!linkage_name.starts_with("_Z")) return Language::kOther;
  return linkage_name.find("17h") != linkage_name.npos ? Language::kRustOrCxx : Language::kCxx;
}

std::string cut(std::string_view text, bool is_whole) {
  if (is_whole && text.size() <= kMaxSymbolNameBytes) return std::string(text);
  return std::string(text.substr(0, kMaxSymbolNameBytes - 3)) + "...";
}

}  // namespace

std::string demangled(std::string_view linkage_name) {
  const volatile Language language = language_of(linkage_name);  // for the jump
  if (linkage_name.size() > kMaxMangledBytes || language == Language::kOther) {
    return cut(linkage_name, true);
  }
  std::array<char, kMaxMangledBytes + 1> mangled;
  std::memcpy(mangled.data(), linkage_name.data(), linkage_name.size());
  mangled[linkage_name.size()] = '\0';
  run.ticks = 0;
  volatile bool is_taken = false;
  // Without the signal mask, which would be a system call for each name: the handler runs with
  // SA_NODEFER, so that none is blocked when it jumps.
  const int outcome = sigsetjmp(run.back, 0);
  if (outcome == kBegin) {
    run.size = 0;
    is_taken =
        language != Language::kCxx && rust_demangle_callback(mangled.data(), 0, take, nullptr) != 0;
    if (!is_taken && language != Language::kRust) {
      run.size = 0;
      run.active = 1;
      is_taken = __gcclibcxx_demangle_callback(mangled.data(), take, nullptr) == 0;
      run.active = 0;
    }
  }
  if (outcome == kFull) return cut({run.text.data(), run.size}, false);
  if (outcome == kOutOfTime || !is_taken) return cut(linkage_name, true);
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
