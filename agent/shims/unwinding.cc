// The unwinder's and the C library's functions that leave frames without a return: where an
// exception comes to rest, where it is caught, and longjmp. The library is before the others in
// the search order when it is preloaded, or linked before them. Not in the archive: in a static
// program there would be no one to pass these calls on to.
//
// Any thread, any state of the program: memory may be short (std::bad_alloc), locks may be held, a
// signal handler may jump. So what is called is found when the library is loaded, as far as it is
// there then.
#include "agent/ring/hooks/unwinding.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>

#include "agent/shims/jump_target.h"

namespace {

namespace agent = collect::agent;

// A function that one of ours replaces.
//
// It is looked for behind this library. What only a library of a dlopen without RTLD_GLOBAL brings
// along is found through who calls: that object and what it needs.
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}

  void find_behind() {
    void* found = dlsym(RTLD_NEXT, name_);
    if (found == nullptr) (void)dlerror();  // the program's next one is not about this
    function_.store(found, std::memory_order_relaxed);
  }

  void* of(const void* caller) {
    void* found = function_.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    find_behind();
    found = function_.load(std::memory_order_relaxed);
    return found != nullptr ? found : find_through(caller);
  }

 private:
  // Each caller has its own, and such a library may be closed again: nothing is kept.
  void* find_through(const void* caller) const {
    Dl_info object;
    if (dladdr(caller, &object) == 0) return nullptr;
    void* handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    void* found = dlsym(handle, name_);
    // Not the library's own dlclose: nothing is unloaded here.
    static constinit Real close{"dlclose"};
    if (close.function_.load(std::memory_order_relaxed) == nullptr) close.find_behind();
    reinterpret_cast<int (*)(void*)>(close.function_.load(std::memory_order_relaxed))(handle);
    Dl_info whose;
    Dl_info ours;
    if (found == nullptr || dladdr(found, &whose) == 0 || dladdr(this, &ours) == 0) return nullptr;
    return whose.dli_fbase == ours.dli_fbase ? nullptr : found;
  }

  const char* name_;
  std::atomic<void*> function_{nullptr};
};

constinit Real set_ip{"_Unwind_SetIP"};
constinit Real get_cfa{"_Unwind_GetCFA"};
constinit Real get_region_start{"_Unwind_GetRegionStart"};
constinit Real begin_catch{"__cxa_begin_catch"};
constinit Real jump{"longjmp"};
constinit Real jump_bsd{"_longjmp"};
constinit Real jump_signal{"siglongjmp"};
constinit Real jump_checked{"__longjmp_chk"};

__attribute__((constructor)) void find_all() {
  for (Real* real : {&set_ip, &get_cfa, &get_region_start, &begin_catch, &jump, &jump_bsd,
                     &jump_signal, &jump_checked}) {
    real->find_behind();
  }
  pthread_key_t key;
  if (pthread_key_create(&key, agent::thread_ended) == 0) agent::watch_thread_ends(key);
}

using WordOfContext = uintptr_t (*)(void*);
using SetWordOfContext = void (*)(void*, uintptr_t);
using BeginCatch = void* (*)(void*);
using Jump = void (*)(void*, int);

uint64_t here() {
  return reinterpret_cast<uint64_t>(__builtin_frame_address(0));
}

// What no one defines no one could have called without us either.
template <class Function>
Function found(Real& real, const void* caller) {
  auto* function = reinterpret_cast<Function>(real.of(caller));
  if (function == nullptr) abort();
  return function;
}

[[noreturn, gnu::always_inline]] inline void jump_by(Real& real, void* target, int value,
                                                     const void* caller) {
  const auto function = found<Jump>(real, caller);
  if (agent::follows_this_thread()) {
    agent::on_unwind({agent::UnwindStep::kJumped, agent::jump_target(target), 0, here()});
  }
  function(target, value);
  abort();
}

}  // namespace

#define COLLECT_STAND_IN __attribute__((visibility("default"), no_instrument_function))

extern "C" {

// A personality routine calls it, in the second phase, for each frame with a landing pad: just
// before that runs. So it comes for exceptions of every language, for rethrown ones, and for
// threads that are cancelled.
COLLECT_STAND_IN void _Unwind_SetIP(void* context, uintptr_t landing_pad) {
  const void* caller = __builtin_return_address(0);
  const auto real = found<SetWordOfContext>(set_ip, caller);
  if (agent::follows_this_thread()) {
    auto* stack_of = reinterpret_cast<WordOfContext>(get_cfa.of(caller));
    auto* start_of = reinterpret_cast<WordOfContext>(get_region_start.of(caller));
    if (stack_of != nullptr && start_of != nullptr) {
      agent::on_unwind({agent::UnwindStep::kLanded, stack_of(context), start_of(context), here()});
    }
  }
  real(context, landing_pad);
}

COLLECT_STAND_IN void* __cxa_begin_catch(void* exception) {
  const auto real = found<BeginCatch>(begin_catch, __builtin_return_address(0));
  agent::on_unwind(
      {agent::UnwindStep::kCaught, reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()), 0, 0});
  return real(exception);
}

COLLECT_STAND_IN void longjmp(jmp_buf target, int value) {
  jump_by(jump, target, value, __builtin_return_address(0));
}
COLLECT_STAND_IN void _longjmp(jmp_buf target, int value) {
  jump_by(jump_bsd, target, value, __builtin_return_address(0));
}
COLLECT_STAND_IN void siglongjmp(sigjmp_buf target, int value) {
  jump_by(jump_signal, target, value, __builtin_return_address(0));
}
// glibc's, for programs that are built with _FORTIFY_SOURCE.
COLLECT_STAND_IN void __longjmp_chk(jmp_buf target, int value) {
  jump_by(jump_checked, target, value, __builtin_return_address(0));
}

}  // extern "C"
