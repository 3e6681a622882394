#include "daemon/inject/traced_thread.h"

#include <elf.h>
#include <fmt/core.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/inject/process_threads.h"

namespace collect::inject {
namespace {

constexpr timespec kLook{0, 50'000};
constexpr uint64_t kCallBytes = 2;          // of the instruction
constexpr size_t kMaxVectorBytes = 16'384;  // AMX tiles alone have 8,192

// Numbers by which the kernel says that a system call was interrupted and is to continue.
constexpr int64_t kFirstRestart = -516;
constexpr int64_t kLastRestart = -512;

constexpr long kBlockingCalls[] = {SYS_read,
                                   SYS_readv,
                                   SYS_recvfrom,
                                   SYS_recvmsg,
                                   SYS_accept,
                                   SYS_accept4,
                                   SYS_poll,
                                   SYS_ppoll,
                                   SYS_select,
                                   SYS_pselect6,
                                   SYS_epoll_wait,
                                   SYS_epoll_pwait,
                                   SYS_epoll_pwait2,
                                   SYS_nanosleep,
                                   SYS_clock_nanosleep,
                                   SYS_pause,
                                   SYS_wait4,
                                   SYS_waitid,
                                   SYS_rt_sigtimedwait,
                                   SYS_rt_sigsuspend,
                                   SYS_io_getevents,
                                   SYS_msgrcv,
                                   SYS_semtimedop,
                                   SYS_write,
                                   SYS_sendto,
                                   SYS_restart_syscall,
                                   SYS_futex};

bool is_blocking(int64_t call) {
  return std::find(std::begin(kBlockingCalls), std::end(kBlockingCalls), call) !=
         std::end(kBlockingCalls);
}

// A set of signals in hexadecimal, as /proc has it.
uint64_t signals_in(const std::string& line) {
  return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
}

// That the thread does not block.
bool has_signal(pid_t tid) {
  uint64_t pending = 0;
  uint64_t blocked = 0;
  std::ifstream file(fmt::format("/proc/{}/status", tid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:")) pending |= signals_in(line);
    if (line.starts_with("SigBlk:")) blocked = signals_in(line);
  }
  return (pending & ~blocked) != 0;
}

Error ended(pid_t tid) {
  return {Code::kNotFound, fmt::format("thread {} has ended", tid)};
}

Error failed(pid_t tid, const char* what) {
  const int error = errno;
  if (error == ESRCH) return ended(tid);
  return errno_error(error, fmt::format("thread {}: {}", tid, what));
}

bool has_exited(const siginfo_t& event) {
  return event.si_code == CLD_EXITED || event.si_code == CLD_KILLED || event.si_code == CLD_DUMPED;
}

Status ask(__ptrace_request request, pid_t tid, void* address, void* data, const char* what) {
  if (::ptrace(request, tid, address, data) == 0) return {};
  return failed(tid, what);
}

void* number(long value) {
  return reinterpret_cast<void*>(value);
}

}  // namespace

bool is_blocked(const user_regs_struct& registers) {
  const auto result = static_cast<int64_t>(registers.rax);
  const bool is_restarted = result >= kFirstRestart && result <= kLastRestart;
  return is_blocking(static_cast<int64_t>(registers.orig_rax)) &&
         (is_restarted || result == -EINTR);
}

bool is_ended_call(const user_regs_struct& registers) {
  return is_blocked(registers) && static_cast<int64_t>(registers.rax) == -EINTR;
}

Result<TracedThread> TracedThread::seize(pid_t tid) {
  const Status seized = ask(PTRACE_SEIZE, tid, nullptr, nullptr, "attaching");
  if (seized.ok()) return TracedThread(tid);
  // The kernel says the same of threads that have ended as of those that it protects.
  if (seized.code() == Code::kPermission && has_ended(tid)) return ended(tid);
  return seized.error();
}

TracedThread::TracedThread(TracedThread&& other) noexcept
    : tid_(std::exchange(other.tid_, 0)),
      stopped_(other.stopped_),
      group_stop_(other.group_stop_),
      signal_(other.signal_) {}

TracedThread::~TracedThread() {
  if (tid_ == 0) return;
  // Only a stopped thread can be let go.
  if (!stopped_ && interrupt().ok()) {
    (void)await_stop(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }
  (void)::ptrace(PTRACE_DETACH, tid_, nullptr, number(signal_));
}

Status TracedThread::interrupt() {
  return ask(PTRACE_INTERRUPT, tid_, nullptr, nullptr, "interrupting");
}

void TracedThread::take(int status) {
  stopped_ = true;
  const int signal = WSTOPSIG(status);
  const bool event = status >> 16 == PTRACE_EVENT_STOP;
  group_stop_ = event && signal != SIGTRAP;
  if (!event && signal != SIGTRAP) signal_ = signal;
}

Status TracedThread::await_stop(Deadline deadline) {
  while (!stopped_) {
    siginfo_t event{};
    const int looked = ::waitid(P_PID, static_cast<id_t>(tid_), &event,
                                WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    const bool is_known = looked == 0 && event.si_pid == tid_;
    // The end of a process is reported to its parent, which may be this process.
    if (is_known && has_exited(event) && is_first_thread(tid_)) {
      return ended(std::exchange(tid_, 0));
    }
    int status = 0;
    const pid_t which = is_known ? ::waitpid(tid_, &status, __WALL | WNOHANG) : 0;
    if (which == tid_ && WIFSTOPPED(status)) {
      take(status);
      break;
    }
    if (which != 0 || looked != 0) {  // it ended, or no one knows it any more
      return ended(std::exchange(tid_, 0));
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{Code::kUnavailable,
                   fmt::format("thread {} does not stop: it waits in the kernel", tid_)};
    }
    ::nanosleep(&kLook, nullptr);
  }
  return {};
}

bool TracedThread::has_stopped() {
  return await_stop(Deadline{}).ok();
}

Status TracedThread::stop(Deadline deadline) {
  COLLECT_TRY(interrupt());
  return await_stop(deadline);
}

Status TracedThread::go_on() {
  COLLECT_TRY(ask(PTRACE_CONT, tid_, nullptr, number(std::exchange(signal_, 0)), "continuing"));
  stopped_ = false;
  return {};
}

Status TracedThread::step(Deadline deadline) {
  COLLECT_TRY(ask(PTRACE_SINGLESTEP, tid_, nullptr, nullptr, "stepping"));
  stopped_ = false;
  return await_stop(deadline);
}

Status TracedThread::mend_interruption() {
  auto now = registers();
  if (!now.ok()) return now.error();
  if (!is_ended_call(*now) || signal_ != 0 || has_signal(tid_)) return {};
  now->rip -= kCallBytes;
  now->rax = now->orig_rax;
  now->orig_rax = ~uint64_t{0};
  return set_registers(*now);
}

Result<user_regs_struct> TracedThread::registers() const {
  user_regs_struct registers{};
  iovec block{&registers, sizeof registers};
  COLLECT_TRY(ask(PTRACE_GETREGSET, tid_, number(NT_PRSTATUS), &block, "reading its registers"));
  return registers;
}

Status TracedThread::set_registers(const user_regs_struct& registers) const {
  iovec block{const_cast<user_regs_struct*>(&registers), sizeof registers};
  return ask(PTRACE_SETREGSET, tid_, number(NT_PRSTATUS), &block, "setting its registers");
}

Result<BorrowedThread> BorrowedThread::borrow(TracedThread& thread) {
  BorrowedThread borrowed(thread);
  const auto registers = thread.registers();
  if (!registers.ok()) return registers.error();
  borrowed.registers_ = *registers;
  borrowed.vectors_.resize(kMaxVectorBytes);
  iovec block{borrowed.vectors_.data(), borrowed.vectors_.size()};
  COLLECT_TRY(ask(PTRACE_GETREGSET, thread.tid(), number(NT_X86_XSTATE), &block,
                  "reading its vector registers"));
  borrowed.vectors_.resize(block.iov_len);
  uint64_t& mask = borrowed.signal_mask_;
  COLLECT_TRY(
      ask(PTRACE_GETSIGMASK, thread.tid(), number(sizeof mask), &mask, "reading its signal mask"));
  // A trap of a step is no signal that the thread may block.
  uint64_t all = ~(uint64_t{1} << (SIGTRAP - 1));
  COLLECT_TRY(
      ask(PTRACE_SETSIGMASK, thread.tid(), number(sizeof all), &all, "setting its signal mask"));
  return borrowed;
}

Status BorrowedThread::give_back() const {
  if (!thread_->is_stopped()) {
    COLLECT_TRY(thread_->stop(std::chrono::steady_clock::now() + kGiveBackBound));
  }
  const pid_t tid = thread_->tid();
  iovec block{const_cast<uint8_t*>(vectors_.data()), vectors_.size()};
  const Status vectors =
      ask(PTRACE_SETREGSET, tid, number(NT_X86_XSTATE), &block, "setting its vector registers");
  const Status registers = thread_->set_registers(registers_);
  uint64_t mask = signal_mask_;
  const Status signals =
      ask(PTRACE_SETSIGMASK, tid, number(sizeof mask), &mask, "setting its signal mask");
  if (!registers.ok()) return registers;
  return vectors.ok() ? signals : vectors;
}

}  // namespace collect::inject
