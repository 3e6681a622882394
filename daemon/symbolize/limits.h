// Every limit of naming functions, in one place. SYMBOLIZE.md "Limits" has the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace collect::symbolize {

// For one lookup, which is one run of collect-symbolizer.
inline constexpr uint64_t kLookupMemoryBytes = 1ull << 30;  // address space
inline constexpr uint64_t kLookupCpuSeconds = 10;           // then SIGXCPU ends it
inline constexpr uint64_t kLookupCpuSpareSeconds = 1;       // later SIGKILL does
inline constexpr std::chrono::milliseconds kLookupDeadline{20'000};
inline constexpr size_t kMaxRequestBytes = 8u << 20;
inline constexpr size_t kMaxAnswerFrameBytes = 1u << 20;
inline constexpr uint64_t kMaxAnswerBytes = 96ull << 20;  // all frames of an answer
inline constexpr size_t kMaxCandidates = 256;             // files that may be the module's
inline constexpr uint64_t kLookupDescriptors = kMaxCandidates + 16;
inline constexpr size_t kMaxDirectoryEntries = 100'000;  // looked at, of one symbol directory
inline constexpr uint64_t kMaxModuleFileBytes = 64ull << 30;
inline constexpr size_t kMaxSymbols = 4u << 20;                 // of one file
inline constexpr uint64_t kMaxSymbolTableBytes = 512ull << 20;  // a larger symbol table is refused
inline constexpr uint64_t kMaxRelocationsRead = 16u << 20;      // of one file, for all its stubs
inline constexpr uint64_t kMaxDebugBytes = 256ull << 20;        // of DWARF in a Mach-O file
inline constexpr uint32_t kMaxLoadCommandBytes = 1u << 20;      // of a Mach-O image
inline constexpr uint32_t kMaxArchitectures = 32;               // of one Mach-O file
inline constexpr size_t kMaxPathBytes = 4096;

// For one name.
inline constexpr size_t kMaxMangledBytes = 16 * 1024;  // longer names stay as they are
inline constexpr size_t kMaxSymbolNameBytes = 2048;    // longer ones are cut, and end in "..."
inline constexpr std::chrono::milliseconds kDemangleTick{20};
inline constexpr int kDemangleTicks = 5;  // of CPU time; then the name stays as it is

// For one session.
inline constexpr size_t kMaxManifestSymbols = 200'000;
inline constexpr uint64_t kMaxManifestSymbolBytes = 64ull << 20;  // of all names together
inline constexpr size_t kMaxSessionLookups = 1024;
inline constexpr std::chrono::milliseconds kMaxSessionTime{60'000};
inline constexpr uint32_t kMaxNamingTries = 3;  // begun, and ended by a crash of the daemon

// For the daemon.
inline constexpr size_t kMaxKnownFiles = 4096;  // by build id; then the oldest goes
inline constexpr size_t kMaxPathsOfFile = 4;    // of one build id
inline constexpr std::chrono::milliseconds kNamingSlice{2'000};  // then the next session has a turn
inline constexpr size_t kMaxQueuedSessions = 65'536;
inline constexpr size_t kMaxQueuedFunctions = 8u << 20;  // ids held for queued sessions: 64 MiB
inline constexpr std::chrono::milliseconds kNamingStopBound{3'000};
// For one request by name (a filter, detail of some functions), over all modules of an agent.
inline constexpr std::chrono::milliseconds kMaxFunctionSearch{60'000};

}  // namespace collect::symbolize
