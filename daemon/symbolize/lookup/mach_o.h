// Mach-O as files have it (Apple's <mach-o/loader.h>, <mach-o/fat.h>, <mach-o/nlist.h>): what
// naming functions takes. 64-bit and little-endian, as every device of today has it; the header of
// a file with several architectures is big-endian.
#pragma once

#include <cstdint>

namespace collect::symbolize {

inline constexpr uint32_t kMachMagic64 = 0xfeedfacf;
inline constexpr uint32_t kFatMagic = 0xcafebabe;    // big-endian; Java's classes begin with it too
inline constexpr uint32_t kFatMagic64 = 0xcafebabf;  // big-endian

inline constexpr uint32_t kCpuArm64 = 0x0100000c;
inline constexpr uint32_t kCpuX86_64 = 0x01000007;

struct MachHeader {
  uint32_t magic;
  uint32_t cpu_type;
  uint32_t cpu_subtype;
  uint32_t file_type;
  uint32_t commands;
  uint32_t command_bytes;
  uint32_t flags;
  uint32_t reserved;
};
static_assert(sizeof(MachHeader) == 32);

struct LoadCommand {
  uint32_t command;
  uint32_t bytes;
};

inline constexpr uint32_t kCommandSymtab = 0x2;
inline constexpr uint32_t kCommandSegment64 = 0x19;
inline constexpr uint32_t kCommandUuid = 0x1b;
inline constexpr uint32_t kUuidBytes = 16;

struct SymtabCommand {
  LoadCommand head;
  uint32_t symbols_offset;
  uint32_t symbols;
  uint32_t strings_offset;
  uint32_t strings_bytes;
};

struct SegmentCommand {
  LoadCommand head;
  char name[16];
  uint64_t address;
  uint64_t memory_bytes;
  uint64_t file_offset;
  uint64_t file_bytes;
  uint32_t most_protection;
  uint32_t protection;
  uint32_t sections;
  uint32_t flags;
};
static_assert(sizeof(SegmentCommand) == 72);

inline constexpr uint32_t kProtectionExecute = 4;

struct MachSection {
  char name[16];  // without a zero when it fills the field
  char segment[16];
  uint64_t address;
  uint64_t bytes;
  uint32_t file_offset;
  uint32_t align;
  uint32_t relocations_offset;
  uint32_t relocations;
  uint32_t flags;
  uint32_t reserved[3];
};
static_assert(sizeof(MachSection) == 80);

inline constexpr uint32_t kSectionOfInstructions = 0x80000400;  // pure ones, or some

struct MachSymbol {
  uint32_t name;
  uint8_t type;
  uint8_t section;  // counted from 1, over all segments
  uint16_t description;
  uint64_t address;
};
static_assert(sizeof(MachSymbol) == 16);

inline constexpr uint8_t kSymbolDebug = 0xe0;  // any of these bits
inline constexpr uint8_t kSymbolKind = 0x0e;
inline constexpr uint8_t kSymbolInSection = 0x0e;
inline constexpr uint8_t kSymbolPrivate = 0x10;
inline constexpr uint8_t kSymbolExternal = 0x01;
inline constexpr uint16_t kSymbolWeak = 0x80;

}  // namespace collect::symbolize
