// Frames that are left without a return, in all ways. `exceptions MODE [PLUGIN]`:
//   all        every way below, on four threads and again and again; PLUGIN is a library to be
//   opened exit       threads that leave by pthread_exit cancel     threads that are cancelled
//   noexcept   an exception that must not leave a function
//   uncaught   an exception that no one catches
//   inlined    calls that are part of the frame that catches
//   deep       an exception through 15,000 frames
// The functions of the account are those that begin with f_; no one else's are compared.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <unwind.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "account.h"

#define NOINLINE __attribute__((noinline))
// XRay's sleds come after inlining.
#if defined(SLEDS)
#define INLINE NOINLINE
#else
#define INLINE inline __attribute__((always_inline))
#endif

static __thread Account* own;
UNTRACED Account& account() {
  if (own == nullptr) own = new Account;
  return *own;
}

static volatile int sink;
#define NOT_A_TAIL_CALL asm volatile("" ::: "memory")

extern "C" {
using Callback = void (*)(int);
static Callback plugin;  // calls back

NOINLINE void f_leaf(int n) {
  BEGINS;
  sink = sink + n;
  RETURNS;
}

NOINLINE void f_throw(int n) {
  BEGINS;
  if (n == 0) throw std::runtime_error("bottom");
  f_throw(n - 1);
  NOT_A_TAIL_CALL;
  RETURNS;
}

// clang's hooks do not say that an inlined function was left, when the frame that it is a part of
// continues: that is seen when the frame ends (mode `inlined`).
#if defined(__clang__)
NOINLINE
#else
INLINE
#endif
void f_part_of_catcher(int n) {
  BEGINS;
  f_throw(n);
  NOT_A_TAIL_CALL;
  RETURNS;
}

NOINLINE void f_catch_inside(int n) {
  BEGINS;
  try {
    f_part_of_catcher(n);
  } catch (const std::exception&) {
    UNWOUND;
  }
  f_leaf(1);
  RETURNS;
}

// Its cleanup calls a traced function, which itself may throw and catch.
struct Cleanup {
  int kept;
  bool noisy;
  UNTRACED explicit Cleanup(bool is_noisy) : kept(account().depth), noisy(is_noisy) {}
  UNTRACED ~Cleanup() {
    account().unwound_to(kept);
    if (noisy) {
      f_catch_inside(2);
    } else {
      f_leaf(2);
    }
  }
};

NOINLINE void f_with_cleanup(int n, bool noisy) {
  BEGINS;
  Cleanup cleanup(noisy);
  f_throw(n);
  NOT_A_TAIL_CALL;
  RETURNS;
}

INLINE void f_inlined(int n, bool noisy) {
  BEGINS;
  f_with_cleanup(n, noisy);
  NOT_A_TAIL_CALL;
  RETURNS;
}

INLINE void f_inlined_twice(int n, bool noisy) {
  BEGINS;
  f_inlined(n, noisy);
  NOT_A_TAIL_CALL;
  RETURNS;
}

NOINLINE void f_without_cleanup(int n, bool noisy) {
  BEGINS;
  f_inlined_twice(n, noisy);
  NOT_A_TAIL_CALL;
  RETURNS;
}

NOINLINE void f_rethrow(int n) {
  BEGINS;
  try {
    f_without_cleanup(n, true);
  } catch (const std::exception&) {
    UNWOUND;
    f_leaf(3);
    throw;
  }
  RETURNS;
}

NOINLINE void f_throw_another(int n) {
  BEGINS;
  try {
    f_rethrow(n);
  } catch (const std::exception&) {
    UNWOUND;
    f_leaf(4);
    throw 17;
  }
  RETURNS;
}

NOINLINE void f_wrong_type(int n) {
  BEGINS;
  try {
    f_throw_another(n);
  } catch (const std::exception&) {
    std::abort();
  }
  RETURNS;
}

NOINLINE void f_catch(int n) {
  BEGINS;
  for (int i = 0; i < 3; ++i) {
    try {
      f_wrong_type(n + i);
    } catch (int) {
      UNWOUND;
      f_leaf(5);
    }
    f_leaf(6);
  }
  RETURNS;
}

// The exception object lives on; its frames are gone.
NOINLINE void f_exception_pointer(int n) {
  BEGINS;
  std::exception_ptr kept;
  try {
    f_throw(n);
  } catch (...) {
    UNWOUND;
    kept = std::current_exception();
  }
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception&) {
    f_leaf(7);
  }
  RETURNS;
}

// Stack pointers that move within a function.
NOINLINE void f_moving_stack(int n) {
  BEGINS;
  volatile char room[100 + 50 * n];  // of g++ and clang++
  room[n] = 1;
  try {
    f_throw(n);
  } catch (const std::exception&) {
    UNWOUND;
    f_leaf(room[n]);
  }
  RETURNS;
}
NOINLINE void f_moving_stack_unwound(int n) {
  BEGINS;
  volatile char room[100 + 50 * n];  // of g++ and clang++
  room[n] = 1;
  f_throw(n);
  RETURNS;
}
NOINLINE int f_many(int a, int b, int c, int d, int e, int f, int g, int h, int n) {
  BEGINS;
  f_moving_stack_unwound(n);
  NOT_A_TAIL_CALL;
  RETURNS;
  return a + b + c + d + e + f + g + h;
}
NOINLINE void f_arguments(int n) {
  BEGINS;
  try {
    sink = f_many(1, 2, 3, 4, 5, 6, 7, 8, n) + f_many(2, 3, 4, 5, 6, 7, 8, 9, n);
  } catch (const std::exception&) {
    UNWOUND;
  }
  RETURNS;
}

// Through another module, and through frames of the C library, which are not traced.
NOINLINE int f_compare(const void* a, const void* b) {
  BEGINS;
  f_throw(*static_cast<const int*>(a) & 1);
  NOT_A_TAIL_CALL;
  RETURNS;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
NOINLINE void f_sort(int n) {
  BEGINS;
  int numbers[8] = {n, 7, 6, 5, 4, 3, 2, 1};
  std::qsort(numbers, 8, sizeof(int), f_compare);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_modules(int n) {
  BEGINS;
  try {
    plugin(n);
  } catch (...) {
    UNWOUND;
    f_leaf(8);
  }
  RETURNS;
}

// Of no language that C++ knows.
UNTRACED static void drop(_Unwind_Reason_Code, _Unwind_Exception*) {}
NOINLINE void f_throw_foreign(_Unwind_Exception* exception) {
  BEGINS;
  _Unwind_RaiseException(exception);
  std::abort();
}
NOINLINE void f_foreign(int) {
  BEGINS;
  _Unwind_Exception exception{};
  std::memcpy(&exception.exception_class, "collectX", 8);
  exception.exception_cleanup = drop;
  try {
    f_throw_foreign(&exception);
  } catch (...) {
    UNWOUND;
    f_leaf(9);
  }
  RETURNS;
}

static __thread sigjmp_buf target;
NOINLINE void f_jump(int n, int how) {
  BEGINS;
  if (n == 0) {
    if (how == 0) longjmp(target, 1);
    if (how == 1) _longjmp(target, 1);
    siglongjmp(target, 1);
  }
  f_jump(n - 1, how);
  NOT_A_TAIL_CALL;
  RETURNS;
}
// An exception leaves the frame that was jumped to.
NOINLINE void f_jump_then_throw(int n, int how) {
  BEGINS;
  if (sigsetjmp(target, how == 2) == 0) f_jump(n, how);
  JUMPED;
  f_leaf(10);
  f_throw(n);
  RETURNS;
}
NOINLINE void f_on_signal(int) {
  BEGINS;
  f_jump(2, 2);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_jump_out_of_handler(int n) {
  BEGINS;
  if (sigsetjmp(target, 1) == 0) raise(SIGUSR1);
  JUMPED;
  f_throw(n);
  RETURNS;
}
NOINLINE void f_jumps(int n) {
  BEGINS;
  for (int how = 0; how < 3; ++how) {
    try {
      f_jump_then_throw(n, how);
    } catch (const std::exception&) {
      UNWOUND;
      f_leaf(11);
    }
  }
  try {
    f_jump_out_of_handler(n);
  } catch (const std::exception&) {
    UNWOUND;
  }
  RETURNS;
}

NOINLINE void f_every_way(int n) {
  BEGINS;
  f_catch_inside(n);
  f_catch(n);
  f_exception_pointer(n);
  f_moving_stack(n);
  f_arguments(n);
  f_modules(n);
  f_foreign(n);
  f_jumps(n);
  RETURNS;
}

NOINLINE void f_thread_exit(int n) {
  BEGINS;
  if (n == 0) pthread_exit(nullptr);
  f_thread_exit(n - 1);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_wait(int n) {
  BEGINS;
  while (n == 0) pause();
  f_wait(n - 1);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_with_cleanup_below(void (*next)(int)) {
  BEGINS;
  Cleanup cleanup(false);
  next(3);
  NOT_A_TAIL_CALL;
  RETURNS;
}

NOINLINE void f_catch_late(int n) {
  BEGINS;
  try {
    f_inlined_twice(n, false);
  } catch (const std::exception&) {
    UNWOUND;
  }
  RETURNS;
}

NOINLINE void f_must_not(int n) noexcept {
  BEGINS;
  f_throw(n);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_deep(int n) {
  BEGINS;
  if (n == 0) throw 1;
  f_deep(n - 1);
  NOT_A_TAIL_CALL;
  RETURNS;
}
NOINLINE void f_catch_deep(int n) {
  BEGINS;
  try {
    f_deep(n);
  } catch (int) {
    UNWOUND;
  }
  f_leaf(12);
  RETURNS;
}
}  // extern "C"

UNTRACED static void* every_way(void*) {
  for (int round = 0; round < 20; ++round) f_every_way(round % 5);
  account().close();
  return nullptr;
}

struct Ending {
  bool cancelled;
  Account* account = nullptr;
};
UNTRACED static void* ends_early(void* argument) {
  auto& ending = *static_cast<Ending*>(argument);
  __atomic_store_n(&ending.account, &account(), __ATOMIC_SEQ_CST);
  // Plain frames below, so that no one but the thread's end tells of them.
  (ending.cancelled ? f_wait : f_thread_exit)(2);
  return nullptr;
}
UNTRACED static void* ends_early_with_cleanup(void* argument) {
  auto& ending = *static_cast<Ending*>(argument);
  __atomic_store_n(&ending.account, &account(), __ATOMIC_SEQ_CST);
  f_with_cleanup_below(ending.cancelled ? f_wait : f_thread_exit);
  return nullptr;
}

UNTRACED static int end_threads(bool cancelled) {
  for (const auto start : {ends_early, ends_early_with_cleanup}) {
    Ending ending{cancelled};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, start, &ending) != 0) return 3;
    if (cancelled) {
      usleep(100'000);
      pthread_cancel(thread);
    }
    pthread_join(thread, nullptr);
    ending.account->unwound_to(0);
    ending.account->close();
  }
  return 0;
}

static int left_by_terminate;
UNTRACED static void leave_at_once() {
  account().unwound_to(left_by_terminate);
  account().close();
  exit(0);
}

UNTRACED int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "all";
  if (std::strcmp(mode, "exit") == 0) return end_threads(false);
  if (std::strcmp(mode, "cancel") == 0) return end_threads(true);
  if (std::strcmp(mode, "deep") == 0) {
    f_catch_deep(15'000);
    f_catch_deep(9'000);
    account().close();
    return 0;
  }
  std::set_terminate(leave_at_once);
  // The frames within the one that must not be left are gone by then; without any handler, none is.
  left_by_terminate = std::strcmp(mode, "noexcept") == 0 ? 1 : Account::kMost;
  if (std::strcmp(mode, "noexcept") == 0) f_must_not(2);
  if (std::strcmp(mode, "uncaught") == 0) f_throw(2);
  if (std::strcmp(mode, "inlined") == 0) {
    for (int n = 0; n < 5; ++n) f_catch_late(n);
    account().close();
    return 0;
  }
  if (argc < 3) return 2;
  void* library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 4;
  reinterpret_cast<void (*)(Callback, Account& (*)())>(dlsym(library, "set_callback"))(f_sort,
                                                                                       account);
  plugin = reinterpret_cast<Callback>(dlsym(library, "f_plugin"));
  std::signal(SIGUSR1, f_on_signal);
  pthread_t threads[4];
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, nullptr, every_way, nullptr) != 0) return 3;
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  return 0;
}
