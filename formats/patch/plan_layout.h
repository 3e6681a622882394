// The file of a patch plan: which bytes of a module the agent replaces by jumps, and the code that
// the jumps lead to. FORMAT.md. Little-endian; everything is relative to the module's load
// bias ("address") or to the region that the agent maps near the module ("offset").
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collect::patch {

inline constexpr char kPlanMagic[8] = {'C', 'P', 'L', 'A', 'N', '0', '0', '2'};
inline constexpr size_t kMaxPlanBuildId = 32;
// The name of a plan's file: the build id in hex, or kFileBegin DEVICE-INODE (decimal) of a module
// that has none; then ".plan".
inline constexpr char kFileBegin[] = "file-";
// The processor that the code is for: ELF's numbers.
enum class Processor : uint32_t { kX86_64 = 62, kArm64 = 183 };

inline constexpr size_t kJumpBytes = 5;       // x86-64: E9 and a distance
inline constexpr size_t kArm64JumpBytes = 4;  // b, and a window is nothing but it
inline constexpr size_t kMaxWindowBytes = 47;
inline constexpr uint64_t kMaxImageBytes = uint64_t{1} << 30;
inline constexpr uint32_t kMaxRegionBytes = 256u << 20;
inline constexpr uint32_t kMaxPlanEntries = 1u << 24;  // of each table
inline constexpr uint64_t kMaxPlanBytes = uint64_t{1} << 30;

// The region begins with what the agent puts there: three ways into its handlers, and the words
// that they read.
inline constexpr uint32_t kTrampolineSpacing = 128;
inline constexpr uint32_t kTrampolineWords = 3 * kTrampolineSpacing;
inline constexpr uint32_t kStubsBegin = 4 * kTrampolineSpacing;

enum class SledUse : uint32_t { kEnter = 0, kExit = 1, kTail = 2 };

// A sled of a stub calls the trampoline of its kind while it is traced. On x86-64 its head is
// in the way of the code, and its body beside it.
//   idle     66 90 (nop)
//   traced   jmp body
//   body     push r10; mov r10d, address of the function; call trampoline; pop r10; jmp behind head
inline constexpr uint32_t kSledHeadBytes = 2;
inline constexpr uint32_t kSledBodyBytes = 17;
inline constexpr uint16_t kSledIdleHead = 0x9066;
constexpr uint16_t sled_traced_head(int8_t body) {
  return static_cast<uint16_t>(0xEB | static_cast<uint8_t>(body) << 8);
}
//   arm64, idle   b .+24
//   traced        nop; stp x30, x17, [sp, #-16]!; movz w17, #address; movk w17, #address >> 16,
//                 lsl #16; bl trampoline; ldp x30, x17, [sp], #16
inline constexpr uint32_t kArm64SledBytes = 24;
inline constexpr uint32_t kArm64SledIdleHead = 0x14000006;
inline constexpr uint32_t kArm64SledTracedHead = 0xD503201F;
inline constexpr uint32_t kArm64SledPush = 0xA9BF47FE;
inline constexpr uint32_t kArm64SledPop = 0xA8C147FE;
inline constexpr uint32_t kArm64Branch = 0x14000000;  // b; a signed number of words in 26 bits
inline constexpr uint32_t kArm64BranchMask = 0xFC000000;
inline constexpr uint64_t kArm64Reach = uint64_t{1} << 27;  // of b, forwards and backwards

// Why a function is not traced. A name in refusal_text() for each.
enum class Refusal : uint32_t {
  kNone,           // it is traced
  kStart,          // the program's first code, which has no caller
  kLinkage,        // jumps to other modules (.plt)
  kSignalFrame,    // returns to the kernel
  kUnwindUnknown,  // its unwind information is not understood
  kUndecodable,    // not code from its first byte to its last
  kRunsOn,         // no end: it runs into what follows
  kNoRoomAtEntry,  // no room for a jump at its beginning
  kLoopToEntry,    // jumps back to its beginning
  kNoRoomAtExit,   // no room for a jump where it returns
  kUnevenReturn,   // returns with something on the stack
  kUnknownJump,    // a jump whose targets are not known
  kJumpsOut,       // jumps into another function
  kEnteredInside,  // another function jumps into it
  kSharedPart,     // shares a part with another function
  kPersonality,    // is called by the unwinder while that leaves frames
  kNotMovable,     // an instruction that can't be moved
  kCount
};
const char* refusal_text(Refusal refusal);

struct PlanHeader {                   // 128 bytes
  char magic[8];                      //   0  kPlanMagic
  uint32_t crc;                       //   8  CRC-32C of everything behind it
  uint32_t build_id_bytes;            //  12  0: none; windows and size say whose plan it is
  uint8_t build_id[kMaxPlanBuildId];  //  16
  uint64_t image_bytes;               //  48  from address 0 to the end of the last segment
  uint32_t region_bytes;              //  56  of it the trampolines are zeroes
  uint32_t site_count;                //  60
  uint32_t sled_count;                //  64
  uint32_t relative_count;            //  68
  uint32_t absolute_count;            //  72
  uint32_t function_count;            //  76
  uint32_t code_bytes;                //  80  of all functions
  uint32_t processor;                 //  84  Processor
  uint8_t reserved[40];               //  88  zero
};
static_assert(sizeof(PlanHeader) == 128 && offsetof(PlanHeader, reserved) == 88);
static_assert(std::has_unique_object_representations_v<PlanHeader>);

struct PlanSite {                     // 56 bytes; by ascending address
  uint32_t address;                   //  0
  uint32_t stub;                      //  4  offset
  uint8_t bytes;                      //  8  of the window, from the jump's on
  uint8_t original[kMaxWindowBytes];  //  9
};
static_assert(sizeof(PlanSite) == 56 && offsetof(PlanSite, original) == 9);
static_assert(std::has_unique_object_representations_v<PlanSite>);

struct PlanSled {     // 12 bytes; by ascending offset
  uint32_t sled;      //  0  offset, even; arm64: a multiple of 4
  uint32_t function;  //  4  address
  uint8_t use;        //  8  SledUse
  int8_t body;        //  9  from the end of its head; arm64: 0
  uint16_t reserved;  // 10  zero
};
static_assert(sizeof(PlanSled) == 12);

// A function that the plan traces or refuses; by ascending address.
struct PlanFunction {  // 12 bytes
  uint32_t address;    //  0
  uint32_t bytes;      //  4
  uint32_t refusal;    //  8  Refusal
};
static_assert(sizeof(PlanFunction) == 12);

// Behind the header: region_bytes of code (a multiple of 8), the sites, the sleds, the relative
// fix-ups (u32 offset of a signed 32-bit distance, written as if the region were at address 0: less
// the region's distance from the module; arm64: of a b, whose distance is written so), the absolute
// ones (u32 offset of an address of 64 bits: plus the load bias), the functions.

}  // namespace collect::patch
