// The shim for -fxray-instrument: what the trampolines of collect_xray.o call. This file is
// compiled for general registers only, so that the arguments and results in vector registers stay
// where they are; before anything else of the agent is called, they are saved.
#include <cstdint>

#include "agent/drain/drain.h"
#include "agent/ring/hooks_inline.h"
#include "agent/ring/sleds.h"
#include "agent/shims/xray_module.h"

namespace {

namespace agent = collect::agent;
namespace atf = collect::atf;
using atf::EventKind;

// Where the trampolines have put things: how many words above their block the return address
// stands, which leads to the function's caller; which of the words are arguments or results.
#if defined(__x86_64__)
constexpr uint32_t kArguments = 6;
constexpr uint32_t kResults = 2;
constexpr uint32_t kAboveCalled = 9;  // eight registers and the way back into the sled
constexpr uint32_t kAboveJumped = 3;
constexpr uint32_t kAboveToStack = 0;  // there the stack pointer points to at the sled
constexpr uint64_t kPushed = 0;        // the return address is on the stack
#else
constexpr uint32_t kArguments = 8;
constexpr uint32_t kResults = 2;
constexpr uint32_t kAboveCalled = 20;
constexpr uint32_t kAboveJumped = 20;
constexpr uint32_t kAboveToStack = 2;  // the sled has pushed two words, the return address lower
constexpr uint64_t kPushed = 8;  // as if the return address were on the stack: below the caller's
#endif

#if defined(__x86_64__)

// The legacy area, the header and AVX-512's state, as XSAVE lays them out: all that may hold
// arguments or results.
constexpr uint64_t kVectorState = 0xE7;  // x87, SSE, AVX, AVX-512
struct alignas(64) VectorRegisters {
  unsigned char bytes[2752];
};

bool has_xsave() {
  uint32_t a = 1;
  uint32_t b;
  uint32_t c = 0;
  uint32_t d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (c >> 27 & 1) != 0;  // the system has switched it on
}

[[gnu::always_inline]] inline void save(VectorRegisters& to, bool by_xsave) {
  if (by_xsave) {
    // The header: XRSTOR objects to what it does not know. Not memset, which uses the registers.
    auto* header = reinterpret_cast<volatile uint64_t*>(to.bytes + 512);
    for (uint32_t i = 0; i < 8; ++i) header[i] = 0;
    asm volatile("xsave64 %0"
                 : "+m"(to)
                 : "a"(static_cast<uint32_t>(kVectorState)), "d"(0)
                 : "memory");
  } else {
    asm volatile("fxsave64 %0" : "=m"(to) : : "memory");
  }
}

[[gnu::always_inline]] inline void restore(const VectorRegisters& from, bool by_xsave) {
  if (by_xsave) {
    asm volatile("xrstor64 %0"
                 :
                 : "m"(from), "a"(static_cast<uint32_t>(kVectorState)), "d"(0)
                 : "memory");
  } else {
    asm volatile("fxrstor64 %0" : : "m"(from) : "memory");
  }
}

#else

struct alignas(16) VectorRegisters {
  unsigned char bytes[8 * 16];
};

bool has_xsave() {
  return true;
}

[[gnu::always_inline]] inline void save(VectorRegisters& to, bool) {
  asm volatile(
      ".arch_extension fp\n\t.arch_extension simd\n\t"
      "stp q0, q1, [%0]\n\tstp q2, q3, [%0, #32]\n\t"
      "stp q4, q5, [%0, #64]\n\tstp q6, q7, [%0, #96]"
      :
      : "r"(to.bytes)
      : "memory");
}

[[gnu::always_inline]] inline void restore(const VectorRegisters& from, bool) {
  asm volatile(
      ".arch_extension fp\n\t.arch_extension simd\n\t"
      "ldp q0, q1, [%0]\n\tldp q2, q3, [%0, #32]\n\t"
      "ldp q4, q5, [%0, #64]\n\tldp q6, q7, [%0, #96]"
      :
      : "r"(from.bytes)
      : "memory");
}

#endif

bool by_xsave = false;  // constant from the first registration on

struct Sled {
  EventKind kind;
  uint32_t above;      // see kAboveCalled
  uint32_t registers;  // of the block, that mean something
};

[[gnu::always_inline]] inline uint64_t place_of(const uint64_t* block, const Sled& sled) {
  return reinterpret_cast<uint64_t>(block + sled.above + kAboveToStack) - kPushed -
         agent::kPlaceBelow + agent::kPlaceOfSled;
}

[[gnu::noinline, gnu::cold]] void general(agent::Stream* stream, uint64_t function,
                                          const uint64_t* block, uint64_t frame_pointer,
                                          uint64_t hook, const Sled& sled) {
  VectorRegisters kept;
  save(kept, by_xsave);
  agent::HookFrame frame;
  frame.call_site = block[sled.above];
  frame.stack_pointer = reinterpret_cast<uint64_t>(block + sled.above + kAboveToStack);
  frame.frame_pointer = frame_pointer;
  frame.registers = block;
  frame.hook = hook;
  frame.by_sled = true;
  frame.place = place_of(block, sled);
  frame.valid = static_cast<uint16_t>((1u << sled.registers) - 1) | atf::kDetailLrValid |
                atf::kDetailFpValid | atf::kDetailSpValid;
  agent::general_event(stream, function, sled.kind, frame);
  restore(kept, by_xsave);
}

[[gnu::noinline]] void not_short(agent::Stream* stream, uint64_t function, const uint64_t* block,
                                 uint64_t frame_pointer, uint64_t hook, const Sled& sled) {
  if (agent::record_selected<true>(function, sled.kind, stream, place_of(block, sled))) return;
  general(stream, function, block, frame_pointer, hook, sled);
}

constexpr Sled kEnter{EventKind::kCall, kAboveCalled, kArguments};
constexpr Sled kExit{EventKind::kReturn, kAboveJumped, kResults};
// The registers are the next function's arguments: this one's result is that one's.
constexpr Sled kTail{EventKind::kReturn, kAboveCalled, 0};

template <const Sled& kSled>
void on_sled(uint64_t function, const uint64_t* block, uint64_t frame_pointer) {
  agent::Stream* stream = nullptr;
  if (COLLECT_LIKELY(
          agent::record_short<true>(function, kSled.kind, stream, place_of(block, kSled)))) {
    return;
  }
  not_short(stream, function, block, frame_pointer,
            reinterpret_cast<uint64_t>(__builtin_frame_address(0)), kSled);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void collect_xray_register(collect_xray_module* module) {
  static constexpr agent::SledHandler kHandlers[] = {on_sled<kEnter>, on_sled<kExit>,
                                                     on_sled<kTail>};
  if (module == nullptr) return;
  by_xsave = has_xsave();
  agent::sleds_register(*module, kHandlers);
}

__attribute__((visibility("default"))) void collect_xray_unregister(collect_xray_module* module) {
  if (module != nullptr) agent::sleds_unregister(*module);
}

}  // extern "C"
