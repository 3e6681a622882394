// Every limit of following the calls of a recording. CONTROL.md "Limits" has the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace collect::ctl::follow {

// The files are looked at so often. What a look finds is read at the next one: by then the manifest
// says which events before it were lost.
inline constexpr std::chrono::milliseconds kRound{200};
inline constexpr int kReadShare = 2;  // it reads for half of a round, and rests
inline constexpr uint64_t kPartEvents = uint64_t{1} << 16;  // of one thread, then comes the next
// More that no one has read yet are skipped.
inline constexpr uint64_t kMaxUnreadEvents = uint64_t{4} << 20;
// Of switches.bin, in one look: the rest comes at the next.
inline constexpr size_t kMaxSwitchBytesOfLook = size_t{8} << 20;
inline constexpr size_t kMaxWaitsOfThread = 4096;  // between two of its events that are read
inline constexpr uint64_t kAheadEvents = uint64_t{1}
                                         << 16;  // looked at to see which calls survived
inline constexpr uint64_t kSeedEvents = uint64_t{1}
                                        << 16;             // of each thread: whose names come first
inline constexpr std::chrono::seconds kSeedNamesTime{10};  // until then nothing is printed
inline constexpr std::chrono::seconds kNamesTime{30};      // of a later lookup
inline constexpr int kNamesRest = 4;                       // times as long as a lookup took
inline constexpr size_t kMaxNames = 100'000;
inline constexpr size_t kMaxNameBytes = 1024;     // of a name that is sent
inline constexpr size_t kMaxWaitingCalls = 4096;  // whose function has no name yet
inline constexpr int kMaxActivities = 50;
inline constexpr size_t kMaxBatchBytes = size_t{512} << 10;
inline constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;
inline constexpr int kNiceness = 19;

}  // namespace collect::ctl::follow
