// What programs/chaos.c says it did, against what its sessions hold: every event can be foretold
// from its number, so a file is right event by event, also behind a gap, if and only if the gap is
// exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collect::e2e {

struct ChaosThread {
  uint64_t begun = 0;  // iterations of two events each
  uint64_t done = 0;
  uint32_t thread_id = 0;
};
std::vector<ChaosThread> read_progress(const std::string& path, size_t threads);

enum class ChaosEnd : uint8_t {
  kOrderly,  // everything that was begun is there
  kKilled,   // everything that was done is there, and at most what was begun
  kCutOff,   // with its drain thread: no more than was begun
};

struct ChaosTally {
  uint64_t sessions = 0;
  uint64_t events = 0;
  uint64_t lost = 0;
};

// Waits until the sessions of `pid` below `root` are sealed, and checks them all: each in itself,
// and against the next, which begins where it ended when the program's ring was `lossless` (policy
// wait). Failures are reported as test failures that name the session.
ChaosTally check_chaos_process(const std::string& root, int pid,
                               const std::vector<ChaosThread>& progress, ChaosEnd end,
                               bool lossless);

}  // namespace collect::e2e
