// The machine code of XRay sleds: what the compiler leaves, and what is there while a function
// is traced. Bytes in, bytes out, so that the tests read both architectures on any machine.
//
// A sled has a *head*, which decides whether it is passed over or run, and a *tail*, which is
// written once, before the first head, and never changes again. So a thread may be anywhere in a
// sled, or fetch any mixture of old and new, while its head is switched.
#pragma once

#include <cstdint>
#include <cstring>

namespace collect::agent {

// Kinds of xray_instr_map, version 2. Entries that log an argument (3) have an entry's sled.
enum class SledKind : uint8_t { kEnter = 0, kExit = 1, kTail = 2 };

// Whether `distance` can be said in a signed number of so many bits.
constexpr bool fits(int64_t distance, unsigned bits) {
  return distance >= -(int64_t{1} << (bits - 1)) && distance < (int64_t{1} << (bits - 1));
}

namespace x86_64 {

//   idle     jmp .+11                 ret
//   traced   mov r10d, number         mov r10d, number
//            call trampoline          jmp trampoline
struct SledCode {
  using Head = uint16_t;  // sleds are aligned to 2
  static constexpr uint32_t kBytes = 11;
  static constexpr uint32_t kLookAhead = 0;  // bytes behind a sled that kind_of() reads
  static constexpr Head kTracedHead = 0xBA41;

  static constexpr Head idle_head(SledKind kind) {
    return kind == SledKind::kExit ? 0xBAC3 : 0x09EB;  // behind a ret nothing is run
  }
  static bool is_idle(const uint8_t* sled, SledKind kind) {
    return kind == SledKind::kExit ? sled[0] == 0xC3 : sled[0] == 0xEB && sled[1] == 0x09;
  }
  // The kind that the map says is what it is.
  static SledKind kind_of(const uint8_t*, SledKind said) { return said; }
  // The traced sled at `address`. False: the trampoline or the function's number is out of reach.
  static bool encode(SledKind kind, uint64_t address, int64_t number, uint64_t trampoline,
                     uint8_t (&out)[kBytes]) {
    const auto distance = static_cast<int64_t>(trampoline - (address + kBytes));
    if (!fits(distance, 32) || !fits(number, 32)) return false;
    const auto number32 = static_cast<int32_t>(number);
    const auto distance32 = static_cast<int32_t>(distance);
    memcpy(out, &kTracedHead, sizeof kTracedHead);
    memcpy(out + 2, &number32, sizeof number32);
    out[6] = kind == SledKind::kExit ? 0xE9 : 0xE8;
    memcpy(out + 7, &distance32, sizeof distance32);
    return true;
  }
};

}  // namespace x86_64

namespace aarch64 {

//   idle     b .+32
//   traced   nop
//            stp x30, x17, [sp, #-16]!
//            movz w17, #number; movk w17, #number >> 16, lsl #16
//            bl trampoline
//            ldp x30, x17, [sp], #16
//            nop; nop
// B and NOP are of the few instructions that the architecture lets one thread put in each other's
// place while another runs them. x17 is kept because it may hold the target of a tail call.
struct SledCode {
  using Head = uint32_t;
  static constexpr uint32_t kBytes = 32;
  static constexpr uint32_t kLookAhead = 4;
  static constexpr Head kNop = 0xD503201F;
  static constexpr Head kTracedHead = kNop;

  static constexpr Head idle_head(SledKind) { return 0x14000008; }
  static bool is_idle(const uint8_t* sled, SledKind kind) {
    const Head head = idle_head(kind);
    return memcmp(sled, &head, sizeof head) == 0;
  }
  // The map calls an exit what is before a tail call, too: a B or BR follows then, and no RET.
  static SledKind kind_of(const uint8_t* sled, SledKind said) {
    if (said != SledKind::kExit) return said;
    uint32_t next;
    memcpy(&next, sled + kBytes, sizeof next);
    const bool jumps = (next & 0xFC000000) == 0x14000000 || (next & 0xFFFFFC1F) == 0xD61F0000;
    return jumps ? SledKind::kTail : said;
  }
  static bool encode(SledKind, uint64_t address, int64_t number, uint64_t trampoline,
                     uint8_t (&out)[kBytes]) {
    const auto distance = static_cast<int64_t>(trampoline - (address + 16));
    if (!fits(distance, 28) || distance % 4 != 0 || !fits(number, 32)) return false;
    const auto bits = static_cast<uint32_t>(number);
    const uint32_t words[] = {
        kNop,
        0xA9BF47FE,
        0x52800011 | (bits & 0xFFFF) << 5,
        0x72A00011 | (bits >> 16) << 5,
        0x94000000 | (static_cast<uint32_t>(distance / 4) & 0x03FFFFFF),
        0xA8C147FE,
        kNop,
        kNop,
    };
    static_assert(sizeof words == kBytes);
    memcpy(out, words, sizeof words);
    return true;
  }
};

}  // namespace aarch64

}  // namespace collect::agent
