// The shim for -finstrument-functions: the compiler calls these two around every function.
#include <cstdint>

#include "agent/ring/hooks_inline.h"

namespace {

namespace agent = collect::agent;
using collect::atf::EventKind;

// What can be known here: the call site, and the frame and stack pointers of the instrumented
// function at its hook. Its argument registers are gone by then. `hook_frame` is the hook's own
// frame, where the caller's frame pointer is saved, on x86-64 and arm64 alike.
[[gnu::noinline, gnu::cold]] void general(agent::Stream* stream, uint64_t function, EventKind kind,
                                          void* call_site, const uint64_t* hook_frame) {
  agent::HookFrame frame;
  frame.call_site = reinterpret_cast<uint64_t>(call_site);
  frame.frame_pointer = hook_frame[0];
#if defined(__x86_64__)
  frame.stack_pointer =
      reinterpret_cast<uint64_t>(hook_frame + 2);  // above it and the return address
#else
  frame.stack_pointer = frame.frame_pointer;  // the frame record lies at the frame's lower end
#endif
  frame.valid =
      collect::atf::kDetailLrValid | collect::atf::kDetailFpValid | collect::atf::kDetailSpValid;
  agent::general_event(stream, function, kind, frame);
}

[[gnu::always_inline]] inline void hook(void* function, void* call_site, EventKind kind) {
  const auto address = reinterpret_cast<uint64_t>(function);
  const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
  agent::Stream* stream = nullptr;
  if (COLLECT_LIKELY(agent::record_short(address, kind, stream))) return;
  general(stream, address, kind, call_site, frame);
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
