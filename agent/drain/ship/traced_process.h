// The drain process's eye on the process that it drains for: whether it lives, when its memory is
// gone, and how it ended. DrainProcess only. Linux.
//
// Death shows in a pidfd. An exec does not: the process lives on. What goes is its memory, and with
// it the only writable mapping of a file of ours: as long as it is there, the kernel refuses to
// seal that file against writing. No descriptor of the program is needed for either.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr uint64_t kLookMs = 2;         // at least, between two looks
inline constexpr uint64_t kWatchMs = 20;       // at most
inline constexpr uint64_t kMaxDyingMs = 2000;  // between the end of its memory and its own

class TracedProcess {
 public:
  enum class Life : uint8_t {
    kLives,
    kGone,   // nothing is written any more; how it ended is not known yet
    kEnded,  // see end()
  };

  // `alive`: the file that the process has mapped. Both descriptors are this process's alone.
  void watch(pid_t pid, int pidfd, int alive);
  // Cheap between two looks. `exit_code`: as in DrainControl.
  Life look(uint64_t now_ms, uint64_t exit_code);
  // Whether its memory is still there, asked at once.
  bool has_memory();
  // Whether all of it is stopped: by a signal or a debugger.
  bool is_stopped() const;
  // For poll: readable at its death; -1 when there is none, or that is known.
  int poll_fd() const { return life_ == Life::kLives ? pidfd_ : -1; }
  void look_soon() { look_at_ms_ = 0; }

  const collect_wire_ProcessEnd& end() const { return end_; }
  // "exit", "killed by SIGSEGV", "replaced by exec" …
  const char* reason() const { return reason_; }

 private:
  bool is_dead() const;
  void find_end(uint64_t now_ms, uint64_t exit_code);
  bool read_wait_status(int* status) const;
  void take_wait_status(int status);

  pid_t pid_ = 0;
  int pidfd_ = -1;
  int alive_ = -1;
  Life life_ = Life::kLives;
  uint64_t look_at_ms_ = 0;
  uint64_t gone_at_ms_ = 0;
  collect_wire_ProcessEnd end_ = collect_wire_ProcessEnd_init_zero;
  char reason_[32] = "";
};

// Whether a process has ended, waited for or not; its number must not have gone to another yet.
bool is_process_over(pid_t pid);

// Name of a signal as the system's headers have it; null for one without.
const char* signal_name(int number);

}  // namespace collect::agent
