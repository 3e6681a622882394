#include "daemon/inject/injector.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <thread>

#include "daemon/inject/borrowing.h"
#include "daemon/inject/code_writes.h"
#include "daemon/inject/process_memory.h"
#include "daemon/inject/process_threads.h"
#include "daemon/inject/traced_thread.h"
#include "formats/core/threads.h"

extern "C" {
extern const uint8_t collect_loader_begin[] __attribute__((visibility("hidden")));
extern const uint8_t collect_loader_thread[] __attribute__((visibility("hidden")));
extern const uint8_t collect_loader_end[] __attribute__((visibility("hidden")));
}

namespace collect::inject {
namespace {

using Clock = std::chrono::steady_clock;
using patch::AttachRequest;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kStackBytes = 64u << 10;  // of a borrowed thread, which keeps its own as it is
constexpr uint64_t kRequestBytes = (sizeof(AttachRequest) + kPage - 1) / kPage * kPage;
constexpr uint64_t kMemoryBytes = kPage + kRequestBytes + kStackBytes;  // code, request, stack
constexpr uint64_t kScanBytes = 1u << 20;
constexpr uint64_t kDirectionAndTrap = 0x500;  // of the flags
constexpr std::chrono::milliseconds kOneStop{500};
constexpr std::chrono::milliseconds kPause{20};         // between two looks at all threads
constexpr std::chrono::milliseconds kBlockedOnly{300};  // then also threads that run
constexpr std::chrono::microseconds kPoll{100};
constexpr std::chrono::milliseconds kReapPause{50};  // between two looks for ended threads

// Where functions of the C library are in the process: as far from its beginning as here.
Result<uint64_t> function_in(const Target& target, const char* name) {
  void* const library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const here = library == nullptr ? nullptr : ::dlsym(library, name);
  if (library != nullptr) ::dlclose(library);
  Dl_info info{};
  if (here == nullptr || ::dladdr(here, &info) == 0) {
    return Error{Code::kUnsupported, std::string("this C library has no ") + name};
  }
  return target.c_library + reinterpret_cast<uint64_t>(here) -
         reinterpret_cast<uint64_t>(info.dli_fbase);
}

Result<AttachRequest> make_request(const Target& target, const AttachSettings& settings) {
  AttachRequest request{};
  struct Function {
    const char* name;
    uint64_t AttachRequest::* at;
  };
  for (const Function& one : {Function{"pthread_create", &AttachRequest::pthread_create},
                              {"pthread_self", &AttachRequest::pthread_self},
                              {"pthread_detach", &AttachRequest::pthread_detach},
                              {"dlopen", &AttachRequest::dlopen},
                              {"dlsym", &AttachRequest::dlsym},
                              {"dlerror", &AttachRequest::dlerror}}) {
    const auto address = function_in(target, one.name);
    if (!address.ok()) return address.error();
    request.*one.at = *address;
  }
  request.task = settings.task;
  std::memcpy(request.entry, patch::kAttachEntry, sizeof patch::kAttachEntry);
  if (settings.library.size() >= sizeof request.library) {
    return Error{Code::kInvalidArgument, settings.library + " is too long a path"};
  }
  std::memcpy(request.library, settings.library.data(), settings.library.size());
  size_t at = 0;
  for (const std::string& variable : settings.variables) {
    if (variable.size() + 2 > sizeof request.variables - at) {
      return Error{Code::kLimit, fmt::format("the settings of the agent take more than {} bytes",
                                             sizeof request.variables)};
    }
    std::memcpy(request.variables + at, variable.c_str(), variable.size() + 1);
    at += variable.size() + 1;
  }
  return request;
}

class Attachment {
 public:
  Attachment(const Target& target, const ProcessMemory& memory, AttachRequest request,
             const std::function<bool()>& is_cancelled)
      : target_(target),
        memory_(memory),
        is_cancelled_(is_cancelled),
        request_(request),
        points_(target) {}

  Result<AttachOutcome> run() {
    COLLECT_TRY(find_system_call());
    COLLECT_TRY(start_loader());
    COLLECT_TRY(await_while(patch::kAttachLoading));
    AttachOutcome outcome;
    if (request_.state == patch::kAttachPrepared) {
      COLLECT_TRY(commit(outcome));
      COLLECT_TRY(await_while(patch::kAttachCommitted));
    }
    outcome.message = text();
    return outcome;
  }

 private:
  std::string text() const {
    return std::string(request_.message, ::strnlen(request_.message, sizeof request_.message));
  }

  // Two bytes of the C library's code that make the system call whose number is in rax.
  Status find_system_call() {
    std::vector<uint8_t> code;
    for (const CodeRange& range : target_.code) {
      if (range.begin < target_.c_library) continue;
      code.resize(std::min(range.end - range.begin, kScanBytes));
      COLLECT_TRY(memory_.read(range.begin, code.data(), code.size()));
      const uint8_t wanted[] = {0x0F, 0x05};
      const auto found =
          std::search(code.begin(), code.end(), std::begin(wanted), std::end(wanted));
      if (found == code.end()) break;
      system_call_ = range.begin + static_cast<uint64_t>(found - code.begin());
      return {};
    }
    return Error{Code::kUnsupported, "its C library has no code that makes system calls"};
  }

  // Until one of the process's threads has started the new one.
  Status start_loader() {
    const auto began = Clock::now();
    Status last =
        Error{Code::kUnavailable, "no thread of the process was where it can be borrowed"};
    while (Clock::now() - began < kBorrowBound) {
      for (const pid_t tid : threads_of(target_.pid)) {
        const auto started = borrow(tid, Clock::now() - began > kBlockedOnly);
        if (started.ok() && *started) return {};
        if (!started.ok() && started.error().code == Code::kPermission) {
          return explain_refusal(target_.pid, started.error());
        }
        if (!started.ok() && started.error().code == Code::kExhausted) return started.error();
        if (!started.ok() && started.error().code != Code::kNotFound) last = started.error();
      }
      if (threads_of(target_.pid).empty()) return Error{Code::kNotFound, "the process has ended"};
      COLLECT_TRY(check_cancelled());
      std::this_thread::sleep_for(kPause);
    }
    return last;
  }

  // False: the thread is not where it can be borrowed.
  Result<bool> borrow(pid_t tid, bool may_run) {
    auto thread = TracedThread::seize(tid);
    if (!thread.ok()) return thread.error();
    COLLECT_TRY(thread->stop(Clock::now() + kOneStop));
    const auto registers = thread->registers();
    if (!registers.ok()) return registers.error();
    COLLECT_TRY(thread->mend_interruption());
    if (thread->in_group_stop() || !points_.is_safe(*registers, may_run)) return false;
    const auto borrowed = BorrowedThread::borrow(*thread);
    if (!borrowed.ok()) return borrowed.error();
    Status called = prepare_memory(*thread, borrowed->registers());
    if (called.ok()) called = call_create(*thread, borrowed->registers());
    const Status returned = borrowed->give_back();
    if (!called.ok()) return called.error();
    if (!returned.ok()) return returned.error();
    return true;
  }

  Result<uint64_t> system_call(TracedThread& thread, user_regs_struct registers, uint64_t number,
                               uint64_t first, uint64_t second, uint64_t third, uint64_t fourth) {
    registers.rip = system_call_;
    registers.rax = number;
    registers.orig_rax = ~uint64_t{0};
    registers.rdi = first;
    registers.rsi = second;
    registers.rdx = third;
    registers.r10 = fourth;
    registers.r8 = ~uint64_t{0};
    registers.r9 = 0;
    COLLECT_TRY(thread.set_registers(registers));
    COLLECT_TRY(thread.step(Clock::now() + kOneStop));
    const auto after = thread.registers();
    if (!after.ok()) return after.error();
    const auto result = static_cast<int64_t>(after->rax);
    if (result < 0 && result > -int64_t{kPage}) {
      return errno_error(static_cast<int>(-result), "memory in the process");
    }
    return after->rax;
  }

  // Code, request and stack of the borrowed thread; once.
  Status prepare_memory(TracedThread& thread, const user_regs_struct& registers) {
    if (begin_ != 0) return {};
    const auto mapped = system_call(thread, registers, SYS_mmap, 0, kMemoryBytes,
                                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (!mapped.ok()) return mapped.error();
    const auto protection =
        system_call(thread, registers, SYS_mprotect, *mapped, kPage, PROT_READ | PROT_EXEC, 0);
    if (!protection.ok()) {
      return Error{Code::kUnsupported, "the system does not let its memory become code"};
    }
    begin_ = *mapped;
    request_.memory = begin_;
    request_.memory_bytes = kMemoryBytes;
    COLLECT_TRY(memory_.write(begin_, collect_loader_begin,
                              static_cast<size_t>(collect_loader_end - collect_loader_begin)));
    return memory_.write(request_at(), &request_, sizeof request_);
  }

  uint64_t request_at() const { return begin_ + kPage; }

  Status call_create(TracedThread& thread, user_regs_struct registers) {
    registers.rip = begin_;
    registers.rax = request_.pthread_create;
    registers.orig_rax = ~uint64_t{0};
    registers.rdi = request_at() + offsetof(AttachRequest, thread);
    registers.rsi = 0;
    registers.rdx = begin_ + static_cast<uint64_t>(collect_loader_thread - collect_loader_begin);
    registers.rcx = request_at();
    registers.r12 = request_at();
    registers.rsp = begin_ + kMemoryBytes - 64;
    registers.eflags &= ~kDirectionAndTrap;
    COLLECT_TRY(thread.set_registers(registers));
    COLLECT_TRY(thread.go_on());
    const auto deadline = Clock::now() + kCallBound;
    uint64_t returned = 0;
    while (returned == 0 && Clock::now() < deadline && !thread.has_stopped()) {
      const auto now = memory_.get<uint64_t>(request_at() + offsetof(AttachRequest, returned));
      if (!now.ok()) return now.error();
      returned = *now;
      if (returned == 0) std::this_thread::sleep_for(kPoll);
    }
    if (!thread.is_stopped()) COLLECT_TRY(thread.stop(Clock::now() + kGiveBackBound));
    thread.drop_signal();  // of what it was made to do
    const auto at_last = memory_.get<uint64_t>(request_at() + offsetof(AttachRequest, returned));
    if (!at_last.ok()) return at_last.error();
    if (*at_last == 0) {
      return Error{Code::kUnavailable, "a borrowed thread could not start another one in time"};
    }
    const auto result = memory_.get<uint64_t>(request_at() + offsetof(AttachRequest, result));
    if (!result.ok()) return result.error();
    if (*result == 0) return {};
    return Error{Code::kExhausted, "the process may have no further thread: " +
                                       std::string(std::strerror(static_cast<int>(*result)))};
  }

  // An agent that has prepared its jumps goes back by itself when no one writes them.
  Status check_cancelled() const {
    if (!is_cancelled_ || !is_cancelled_()) return {};
    return Error{Code::kCancelled, "interrupted"};
  }

  // What the agent writes; the rest is large.
  Status look() { return memory_.read(request_at(), &request_, offsetof(AttachRequest, library)); }

  // Until the agent is past `state`.
  Status await_while(uint32_t state) {
    const auto deadline = Clock::now() + kLoadBound;
    do {
      COLLECT_TRY(look());
      if (request_.state == patch::kAttachFailed) return Error{Code::kUnsupported, text()};
      if (request_.state != state) return {};
      // Once its code is changed, the agent is to start, too.
      if (state == patch::kAttachLoading) COLLECT_TRY(check_cancelled());
      std::this_thread::sleep_for(kPoll);
    } while (Clock::now() < deadline);
    return Error{Code::kUnavailable,
                 "the agent did not load in time: a thread of the process holds a lock that it "
                 "waits for"};
  }

  Status commit(AttachOutcome& outcome) {
    if (request_.jump_count > kMaxJumps) {
      return Error{Code::kLimit, "the agent wants to write too many jumps"};
    }
    std::vector<patch::AttachJump> jumps(request_.jump_count);
    COLLECT_TRY(memory_.read(request_.jumps, jumps.data(), jumps.size() * sizeof jumps[0]));
    const uint64_t state_at = request_at() + offsetof(AttachRequest, state);
    const auto written =
        write_jumps(target_.pid, memory_, jumps, state_at, Clock::now() + kStopBound);
    if (!written.ok()) {
      // The agent goes back, unless there may be a jump.
      const auto state = memory_.get<uint32_t>(state_at);
      const uint32_t failed = patch::kAttachFailed;
      if (state.ok() && *state == patch::kAttachPrepared) {
        (void)memory_.write(state_at, &failed, sizeof failed);
      }
      return written.error();
    }
    outcome.jumps = jumps.size();
    outcome.threads = written->threads;
    outcome.moved = written->moved;
    outcome.stopped = written->stopped;
    return {};
  }

  const Target& target_;
  const ProcessMemory& memory_;
  const std::function<bool()>& is_cancelled_;
  AttachRequest request_;
  SafePoints points_;
  uint64_t system_call_ = 0;
  uint64_t begin_ = 0;  // of the memory in the process; 0: none yet
};

}  // namespace

Result<AttachOutcome> attach(const Target& target, const AttachSettings& settings) {
  const auto request = make_request(target, settings);
  if (!request.ok()) return request.error();
  auto memory = ProcessMemory::open(target.pid);
  if (!memory.ok()) return explain_refusal(target.pid, memory.error());
  // The memory stays that of the process that had the number when it was opened: no other one gets
  // what is written.
  COLLECT_TRY(check_same(target));
  // When the tracer ends, the kernel lets go of every thread that it still traces, also of one that
  // waits.
  Result<AttachOutcome> outcome = Error{Code::kIo, "nothing was tried"};
  std::promise<void> ended;
  const auto has_ended = ended.get_future();
  const auto tracer = start_thread("tracer", [&] {
    const Status done = contain(
        [&] { outcome = Attachment(target, *memory, *request, settings.is_cancelled).run(); });
    if (!done.ok()) outcome = done.error();
    ended.set_value();
  });
  if (!tracer.ok()) return tracer.error();
  while (has_ended.wait_for(kReapPause) != std::future_status::ready)
    reap_ended_threads(target.pid);
  return outcome;
}

}  // namespace collect::inject
