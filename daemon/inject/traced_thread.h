// One thread of another process under ptrace. Every method is for the thread that seized it. A
// thread that ended meanwhile is kNotFound.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "formats/core/result.h"

namespace collect::inject {

using Deadline = std::chrono::steady_clock::time_point;

// Whether the registers are those of a thread that was blocked in a system call when it stopped,
// which holds no lock of an allocator or of the dynamic linker. The kernel makes most such calls
// again; is_ended_call(): this one it has ended with EINTR.
bool is_blocked(const user_regs_struct& registers);
bool is_ended_call(const user_regs_struct& registers);

class TracedThread {
 public:
  // Continues running. kPermission: the system forbids it; other errors of ptrace(2) likewise.
  static Result<TracedThread> seize(pid_t tid);
  TracedThread(TracedThread&& other) noexcept;
  TracedThread& operator=(TracedThread&&) = delete;
  // Lets it go; a stopped one continues.
  ~TracedThread();

  pid_t tid() const { return tid_; }
  bool is_stopped() const { return stopped_; }
  // Asks it to stop; await_stop() says when it has.
  Status interrupt();
  // kUnavailable: not in time.
  Status await_stop(Deadline deadline);
  Status stop(Deadline deadline);
  // Whether it has stopped by itself meanwhile, as at a signal.
  bool has_stopped();
  void drop_signal() { signal_ = 0; }
  Status go_on();
  // One instruction; it must be stopped, and not by a stop signal.
  Status step(Deadline deadline);
  bool in_group_stop() const { return group_stop_; }

  // For a stopped thread. A system call that the stop has ended with EINTR, as epoll_wait(2) is, is
  // made again when the thread continues, unless a signal waits for it, which may be what it is to
  // see.
  Status mend_interruption();

  Result<user_regs_struct> registers() const;
  Status set_registers(const user_regs_struct& registers) const;

 private:
  explicit TracedThread(pid_t tid) : tid_(tid) {}
  // What waitpid said: a signal that was about to be delivered is kept, and delivered when the
  // thread continues.
  void take(int status);

  pid_t tid_;
  bool stopped_ = false;
  bool group_stop_ = false;
  int signal_ = 0;
};

// How long a thread may take to stop before it is lost. A machine must be very busy for that.
inline constexpr std::chrono::seconds kGiveBackBound{60};

// All that a stopped thread is: it can be made to run something else and then be as it was. The
// signals that may come meanwhile wait.
class BorrowedThread {
 public:
  static Result<BorrowedThread> borrow(TracedThread& thread);
  const user_regs_struct& registers() const { return registers_; }
  // Stops the thread first, if it runs. Where that takes long it is waited for all the same: it
  // could not continue as someone else.
  Status give_back() const;

 private:
  explicit BorrowedThread(TracedThread& thread) : thread_(&thread) {}
  TracedThread* thread_;
  user_regs_struct registers_{};
  std::vector<uint8_t> vectors_;  // as the kernel has them
  uint64_t signal_mask_ = 0;
};

}  // namespace collect::inject
