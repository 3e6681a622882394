// The shim for -finstrument-functions: the compiler calls these two around every function.
#include <cstdint>

#include "agent/ring/hooks/hooks_inline.h"

namespace {

namespace agent = collect::agent;
using collect::atf::EventKind;

// What can be known here: the call site, and the frame and stack pointers of the instrumented
// function at its hook. Its argument registers are gone by then.
[[gnu::noinline, gnu::cold]] void general(agent::Stream* stream, uint64_t function, EventKind kind,
                                          void* call_site, uint64_t frame_pointer,
                                          uint64_t stack_pointer) {
  const uint64_t place = stack_pointer - agent::kPlaceBelow;
  if (agent::record_selected<true>(function, kind, stream, place)) return;
  agent::HookFrame frame;
  frame.place = place;
  frame.call_site = reinterpret_cast<uint64_t>(call_site);
  frame.frame_pointer = frame_pointer;
  frame.stack_pointer = stack_pointer;
  frame.valid =
      collect::atf::kDetailLrValid | collect::atf::kDetailFpValid | collect::atf::kDetailSpValid;
  agent::general_event(stream, function, kind, frame);
}

}  // namespace

#if defined(__aarch64__)

// Where a compiler puts the frame record within a frame is its own affair on arm64, so the hooks
// begin with two instructions that take both registers as they are, and continue in C++.
extern "C" {

[[gnu::visibility("hidden"), gnu::used]] void collect_hook_enter(void* function, void* call_site,
                                                                 uint64_t stack_pointer,
                                                                 uint64_t frame_pointer) {
  auto address = reinterpret_cast<uint64_t>(function);
  agent::Stream* stream = nullptr;
  if (COLLECT_LIKELY(agent::record_short<true>(address, EventKind::kCall, stream, stack_pointer))) {
    return;
  }
  general(stream, address, EventKind::kCall, call_site, frame_pointer, stack_pointer);
}

[[gnu::visibility("hidden"), gnu::used]] void collect_hook_exit(void* function, void* call_site,
                                                                uint64_t stack_pointer,
                                                                uint64_t frame_pointer) {
  auto address = reinterpret_cast<uint64_t>(function);
  agent::Stream* stream = nullptr;
  if (COLLECT_LIKELY(
          agent::record_short<true>(address, EventKind::kReturn, stream, stack_pointer))) {
    return;
  }
  general(stream, address, EventKind::kReturn, call_site, frame_pointer, stack_pointer);
}

}  // extern "C"

#if defined(__APPLE__)
#define COLLECT_SYMBOL(name) "_" name
#define COLLECT_FUNCTION_TYPE(name) ""
#else
#define COLLECT_SYMBOL(name) name
#define COLLECT_FUNCTION_TYPE(name) ".type " name ", %function\n"
#endif

// hint #34 is bti c: a landing place where the system checks indirect branches.
#define COLLECT_HOOK(name, target) \
  asm(".text\n"                                         \
      ".p2align 2\n"                                    \
      ".globl " COLLECT_SYMBOL(name) "\n"               \
      COLLECT_FUNCTION_TYPE(name)                       \
      COLLECT_SYMBOL(name) ":\n"                        \
      ".cfi_startproc\n"                                \
      "hint #34\n"                                      \
      "mov x2, sp\n"                                    \
      "mov x3, x29\n"                                   \
      "b " COLLECT_SYMBOL(target) "\n"                  \
      ".cfi_endproc\n")

COLLECT_HOOK("__cyg_profile_func_enter", "collect_hook_enter");
COLLECT_HOOK("__cyg_profile_func_exit", "collect_hook_exit");

#else

namespace {

// The hook's own frame: the caller's frame pointer is saved there, the return address above it, and
// then comes the caller's.
[[gnu::always_inline]] inline void hook(void* function, void* call_site, EventKind kind) {
  auto address = reinterpret_cast<uint64_t>(function);
  const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
  agent::Stream* stream = nullptr;
  const auto place = reinterpret_cast<uint64_t>(frame);
  if (COLLECT_LIKELY(agent::record_short<true>(address, kind, stream, place))) return;
  general(stream, address, kind, call_site, frame[0], place + agent::kPlaceBelow);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"), no_instrument_function)) void __cyg_profile_func_enter(
    void* function, void* call_site) {
  hook(function, call_site, EventKind::kCall);
}

__attribute__((visibility("default"), no_instrument_function)) void __cyg_profile_func_exit(
    void* function, void* call_site) {
  hook(function, call_site, EventKind::kReturn);
}

}  // extern "C"

#endif
