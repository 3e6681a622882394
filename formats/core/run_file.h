// What the processes below one `collectctl run` say of themselves, whether or not they ever reach
// the collector. Each program image that loads the agent makes one file in the run's directory and
// maps it; the children that it forks take records of the same mapping, which no close, no other
// user, root directory or namespace takes from them. collectctl reads the files. Plain numbers:
// a writer uses them atomically, and a reader believes nothing (the writers are other programs).
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::run_file {

inline constexpr uint32_t kMagic = 0x31524C43;  // "CLR1"
inline constexpr uint32_t kRecords = 127;
inline constexpr size_t kFileBytes = 65536;

enum State : uint32_t {
  kFree = 0,
  kTaken = 1,   // it is being filled
  kForked = 2,  // its agent was not started yet: of a child, before its first traced call
  kLoaded = 3,  // its agent was started
};

enum Flag : uint32_t {
  kRecorded = 1,   // a traced function was called
  kConnected = 2,  // the collector welcomed it
  kEnded = 4,      // its agent has nothing left to ship, or gave up
  kFailed = 8,     // its agent could not start, or not record: `reason` says why
  kOutlives = 16,  // a process of its own ships, also when this one has ended
  kLinked = 32,    // it has its link to the collector now
};

struct Header {
  uint32_t magic;      //  0
  uint32_t is_over;    //  4  written by collectctl: its collector does not come back
  uint32_t left_out;   // 8  children that found no record
  uint32_t is_closed;  // 12  written by collectctl: it reads this file no more
  uint32_t reserved[124];
};
static_assert(sizeof(Header) == 512);

struct Record {
  uint32_t state;  //   0
  uint32_t flags;  //   4
  uint32_t pid;    //   8  in its own PID namespace
  uint32_t uid;    //  12  effective
  uint64_t
      pid_namespace;  //  16  inode of /proc/self/ns/pid; 0: not known, as `uid`, before kLoaded
  uint64_t begin_ms;  //  24  CLOCK_MONOTONIC: when it was forked or loaded
  uint64_t beat_ms;   //  32  the last round of its drain; 0: none yet
  char program[120];  //  40  the end of its path
  char reason[352];   // 160  the agent's last sentence
};
static_assert(sizeof(Record) == 512);
static_assert(sizeof(Header) + kRecords * sizeof(Record) == kFileBytes);

struct File {
  Header header;
  Record records[kRecords];
};

}  // namespace collect::run_file
