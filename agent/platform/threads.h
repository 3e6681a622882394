// What the system knows about threads. One file for each system; any thread, and nothing allocates.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace collect::agent {

// The calling thread's number, as tools of the system show it. Not asked of the system once it is
// known where the C library keeps it.
uint32_t os_thread_id();
// On the thread that starts the agent.
void find_thread_ids();

// Terminated. False, and what was there stays, when the thread is gone. `process`: whose thread it
// is; 0 for this process's own.
bool read_thread_name(pid_t process, uint32_t thread_id, char* out, size_t out_bytes);

// What the scheduler counts of a thread.
struct ThreadTimes {
  uint64_t run_ns = 0;   // on a processor; of one that runs, up to its last tick
  uint64_t wait_ns = 0;  // it could have run, and waited for a processor
  uint64_t slices = 0;   // so often it came to one
};
// False: the thread is gone, or the system does not say. `process` as above.
bool read_thread_times(pid_t process, uint32_t thread_id, ThreadTimes& times);

// The threads of a process that live. Asked of many at a time, on one thread.
class LivingThreads {
 public:
  explicit LivingThreads(pid_t process);
  ~LivingThreads();
  LivingThreads(const LivingThreads&) = delete;
  LivingThreads& operator=(const LivingThreads&) = delete;
  // False only when it is known to have ended.
  bool contains(uint32_t thread_id) const;

 private:
  [[maybe_unused]] pid_t process_;
  [[maybe_unused]] uint32_t* list_ = nullptr;  // where the system gives a list
  [[maybe_unused]] uint32_t count_ = 0;
};

// Whether a filter of system calls (seccomp) may be on a thread that was not on the one that
// started the agent, which note_filters() looked at. `process` as above. Where there is no /proc (a
// program that changed its root directory), none is seen.
void note_filters();
bool is_filtered(pid_t process, uint32_t thread_id);
// Whether one may be on the thread that note_filters() looked at.
bool was_filtered();

// See recorder.h.
bool only_this_thread_left();

// How often the calling thread gave the CPU up by itself, or was stopped; always 0 where the system
// does not say.
uint64_t voluntary_switches();

// A barrier on the threads that write, which costs them nothing: a store of ours is visible to
// each, and theirs to us. `elsewhere`: they are another process's, and ours must be informed of it
// at the start. Registering is for the thread that starts the agent.
void register_barrier(bool elsewhere);
void barrier_all_threads();

}  // namespace collect::agent
