// The program's own account of its calls and of how each of them ended: in $ACCOUNT.<thread id>, a
// line for each, in order:
//     call NAME, return NAME, exception NAME
// What a longjmp jumped over ends without a line. Every function that is traced says itself when it
// begins and when it returns; who catches or jumps knows how many calls were open then.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#if defined(__clang__)
#define UNTRACED __attribute__((no_instrument_function, xray_never_instrument))
#else
#define UNTRACED __attribute__((no_instrument_function))
#endif

struct Account {
  static constexpr int kMost = 20'000;
  const char* open[kMost];
  int depth = 0;
  std::FILE* file = nullptr;

  UNTRACED void line(const char* what, const char* name) {
    if (file == nullptr) {
      char path[4096];
      std::snprintf(path, sizeof path, "%s.%ld", std::getenv("ACCOUNT"),
                    static_cast<long>(syscall(SYS_gettid)));
      file = std::fopen(path, "we");
      if (file == nullptr) std::abort();
    }
    std::fprintf(file, "%s %s\n", what, name);
  }
  UNTRACED void call(const char* name) {
    if (depth == kMost) std::abort();
    open[depth++] = name;
    line("call", name);
  }
  UNTRACED void returns() { line("return", open[--depth]); }
  // An exception has left all calls beyond the first `kept`.
  UNTRACED void unwound_to(int kept) {
    while (depth > kept) line("exception", open[--depth]);
  }
  UNTRACED void jumped_to(int kept) { depth = kept; }
  UNTRACED void close() {
    if (file != nullptr) std::fclose(file);
    file = nullptr;
  }
};

// Not thread_local with a constructor: its wrapper would be traced.
UNTRACED Account& account();

// At the beginning of each traced function. `mine` counts its own call too.
#define BEGINS              \
  account().call(__func__); \
  [[maybe_unused]] const int mine = account().depth
#define RETURNS account().returns()
#define UNWOUND account().unwound_to(mine)
#define JUMPED account().jumped_to(mine)
