// The shim for -fxray-instrument: what the trampolines of collect_xray.o call. This file is
// compiled for general registers only, so that the arguments and results in vector registers stay
// where they are; before anything else of the agent is called, they are saved.
#include <cstdint>

#include "agent/lifecycle.h"
#include "agent/ring/hooks/hooks_inline.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/sleds/xray_module.h"
#include "agent/shims/planned_handlers.h"

namespace {

namespace agent = collect::agent;
namespace atf = collect::atf;
using atf::EventKind;

// Where the trampolines have put things: how many words above their block the return address
// is, which leads to the function's caller; which of the words are arguments or results.
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

// Arguments and results, and what functions with calling conventions of their own pass: registers 0
// to 15, as wide as their contents. x87's hold results of type long double; nothing of the agent,
// nor of what it calls, uses those. To save 16 registers takes some 5 ns, XSAVE and XRSTOR 180.
struct alignas(64) VectorRegisters {
  unsigned char bytes[16 * 64];
  uint32_t in_use;
};

constexpr uint32_t kAvxState = 1u << 2;
constexpr uint32_t kAvx512State = 1u << 6;  // the upper halves of registers 0 to 15

// How to find out which registers have more than 128 bits in use: what has no more is kept so, for
// instructions of SSE are slow where the rest is not zero.
enum class Widths : uint8_t { kSse, kAsked, kAvx };
Widths widths = Widths::kSse;  // constant from the first registration on

void find_widths() {
  uint32_t a = 1;
  uint32_t b;
  uint32_t c = 0;
  uint32_t d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr uint32_t kOsxsave = 1u << 27;
  constexpr uint32_t kAvx = 1u << 28;
  if ((c & kOsxsave) == 0 || (c & kAvx) == 0) return;
  a = 0xD;
  c = 1;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr uint32_t kXgetbvAnswers = 1u << 2;  // which state is in use; with every AVX-512
  widths = (a & kXgetbvAnswers) != 0 ? Widths::kAsked : Widths::kAvx;
}

uint32_t registers_in_use() {
  if (widths == Widths::kSse) return 0;
  if (widths == Widths::kAvx) return kAvxState;
  uint32_t in_use;
  uint32_t high;
  asm volatile("xgetbv" : "=a"(in_use), "=d"(high) : "c"(1));
  return in_use;
}

#define COLLECT_EACH_REGISTER(line) \
  ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t" line "\n\t.endr"

// Clean upper halves for the agent, whose code knows SSE alone.
[[gnu::always_inline]] inline void save(VectorRegisters& to) {
  to.in_use = registers_in_use();
  if ((to.in_use & kAvx512State) != 0) {
    asm volatile(COLLECT_EACH_REGISTER("vmovdqu64 %%zmm\\n, \\n*64(%0)") "\n\tvzeroupper"
                 :
                 : "r"(to.bytes)
                 : "memory");
  } else if ((to.in_use & kAvxState) != 0) {
    asm volatile(COLLECT_EACH_REGISTER("vmovdqu %%ymm\\n, \\n*32(%0)") "\n\tvzeroupper"
                 :
                 : "r"(to.bytes)
                 : "memory");
  } else {
    asm volatile(COLLECT_EACH_REGISTER("movups %%xmm\\n, \\n*16(%0)") : : "r"(to.bytes) : "memory");
  }
}

[[gnu::always_inline]] inline void restore(const VectorRegisters& from) {
  if ((from.in_use & kAvx512State) != 0) {
    asm volatile(COLLECT_EACH_REGISTER("vmovdqu64 \\n*64(%0), %%zmm\\n")
                 :
                 : "r"(from.bytes)
                 : "memory");
  } else if ((from.in_use & kAvxState) != 0) {
    asm volatile(COLLECT_EACH_REGISTER("vmovdqu \\n*32(%0), %%ymm\\n")
                 :
                 : "r"(from.bytes)
                 : "memory");
  } else {
    asm volatile(COLLECT_EACH_REGISTER("movups \\n*16(%0), %%xmm\\n")
                 :
                 : "r"(from.bytes)
                 : "memory");
  }
}

#undef COLLECT_EACH_REGISTER

#else

// All of them: a compiler that sees caller and callee may keep a value in any.
struct alignas(16) VectorRegisters {
  unsigned char bytes[32 * 16];
};

void find_widths() {}

#define COLLECT_EACH_REGISTER(line)                                             \
  ".arch_extension fp\n\t.arch_extension simd\n\t"                              \
  ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25," \
  "26,27,28,29,30,31\n\t" line " q\\n, [%0, #16*\\n]\n\t.endr"

[[gnu::always_inline]] inline void save(VectorRegisters& to) {
  asm volatile(COLLECT_EACH_REGISTER("str") : : "r"(to.bytes) : "memory");
}

[[gnu::always_inline]] inline void restore(const VectorRegisters& from) {
  asm volatile(COLLECT_EACH_REGISTER("ldr") : : "r"(from.bytes) : "memory");
}

#undef COLLECT_EACH_REGISTER

#endif

struct Sled {
  EventKind kind;
  uint32_t above;      // see kAboveCalled
  uint32_t registers;  // of the block, that mean something
};

[[gnu::always_inline]] inline uint64_t place_of(const uint64_t* block, const Sled& sled) {
  return reinterpret_cast<uint64_t>(block + sled.above + kAboveToStack) - kPushed -
         agent::kPlaceBelow + agent::kPlaceOfSled;
}

// A function that signs its return address has done so before its sled (xpaclri: a nop where there
// are no signatures).
[[gnu::always_inline]] inline uint64_t without_signature(uint64_t address) {
#if defined(__aarch64__)
  register uint64_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));
  return link;
#else
  return address;
#endif
}

[[gnu::noinline, gnu::cold]] void general(agent::Stream* stream, uint64_t function,
                                          const uint64_t* block, uint64_t frame_pointer,
                                          uint64_t hook, const Sled& sled) {
  VectorRegisters kept;
  save(kept);
  agent::HookFrame frame;
  frame.call_site = without_signature(block[sled.above]);
  frame.stack_pointer = reinterpret_cast<uint64_t>(block + sled.above + kAboveToStack);
  frame.frame_pointer = frame_pointer;
  frame.registers = block;
  frame.hook = hook;
  frame.by_sled = true;
  frame.place = place_of(block, sled);
  frame.valid = static_cast<uint16_t>((1u << sled.registers) - 1) | atf::kDetailLrValid |
                atf::kDetailFpValid | atf::kDetailSpValid;
  agent::general_event(stream, function, sled.kind, frame);
  restore(kept);
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

// planned_trampolines.S
#if defined(__x86_64__)
constexpr uint32_t kAbovePlanned = 11;  // nine registers, the way back into the sled, r10
constexpr Sled kPlannedEnter{EventKind::kCall, kAbovePlanned, kArguments};
constexpr Sled kPlannedExit{EventKind::kReturn, kAbovePlanned, kResults};
constexpr Sled kPlannedTail{EventKind::kReturn, kAbovePlanned, 0};
#else
constexpr const Sled& kPlannedEnter = kEnter;
constexpr const Sled& kPlannedExit = kExit;
constexpr const Sled& kPlannedTail = kTail;
#endif

}  // namespace

namespace collect::agent {

const SledHandler* planned_handlers() {
  static constexpr SledHandler kHandlers[] = {on_sled<kPlannedEnter>, on_sled<kPlannedExit>,
                                              on_sled<kPlannedTail>};
  find_widths();
  return kHandlers;
}

}  // namespace collect::agent

extern "C" {

__attribute__((visibility("default"))) void collect_xray_register(collect_xray_module* module) {
  static constexpr agent::SledHandler kHandlers[] = {on_sled<kEnter>, on_sled<kExit>,
                                                     on_sled<kTail>};
  if (module == nullptr) return;
  find_widths();
  // So that the module's constructors are recorded, which may run before the agent's.
  if (agent::g_state.load(std::memory_order_relaxed) == 0) agent::start_early();
  agent::sleds_register(*module, kHandlers);
}

__attribute__((visibility("default"))) void collect_xray_unregister(collect_xray_module* module) {
  if (module != nullptr) agent::sleds_unregister(*module);
}

}  // extern "C"
