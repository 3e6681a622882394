#include "agent/run_records.h"

#include <string.h>

#if defined(__linux__) && !defined(__ANDROID__)

#include <atomic>

#include "agent/platform/identity.h"
#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/text.h"
#include "formats/core/run_file.h"

namespace collect::agent {
namespace {

using run_file::Record;

// A child that was forked so recently may be about to call its first function.
constexpr uint64_t kFreshForkMs = 200;
// A drain that was silent for so long is not there any more.
constexpr uint64_t kSilentMs = 2000;

run_file::File* g_file = nullptr;
std::atomic<Record*> g_record{nullptr};
char g_directory[kMaxAddress] = {};

template <class T>
T get(T& field) {
  return std::atomic_ref<T>(field).load(std::memory_order_relaxed);
}
template <class T>
void put(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
}

uint64_t clock_ms() {
  timespec now{};
  (void)sys::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

void set_flag(uint32_t flag) {
  Record* const record = g_record.load(std::memory_order_relaxed);
  if (record == nullptr) return;
  // Hooks come here: nothing is locked where nothing changes.
  if ((get(record->flags) & flag) == flag) return;
  std::atomic_ref<uint32_t>(record->flags).fetch_or(flag, std::memory_order_release);
}

// The end of a text says more than its beginning.
void copy_end(char* out, size_t size, const char* text, size_t length) {
  const size_t kept = length < size ? length : size - 1;
  memcpy(out, text + length - kept, kept);
  memset(out + kept, 0, size - kept);
}

run_file::File* make_file() {
  uint8_t random[16];
  if (!fill_random(random, sizeof random)) return nullptr;
  char path[kMaxAddress + 64];
  Text name(path, sizeof path);
  name.add(g_directory).add("/");
  for (const uint8_t byte : random) {
    const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15], '\0'};
    name.add(digits);
  }
  const int file = sys::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  // All of it: a full disk is a process without a record, and no signal later.
  if (sys::call(SYS_fallocate, file, 0, 0, run_file::kFileBytes) == 0) {
    mapped = sys::mmap(nullptr, run_file::kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  (void)sys::close(file);
  if (mapped == MAP_FAILED) {
    (void)sys::unlink(path);
    return nullptr;
  }
  auto* const made = static_cast<run_file::File*>(mapped);
  made->header.magic = run_file::kMagic;
  return made;
}

Record* take_record() {
  if (g_file == nullptr || get(g_file->header.is_closed) != 0) return nullptr;
  for (Record& record : g_file->records) {
    uint32_t state = run_file::kFree;
    if (get(record.state) == state &&
        std::atomic_ref<uint32_t>(record.state)
            .compare_exchange_strong(state, run_file::kTaken, std::memory_order_acquire)) {
      return &record;
    }
  }
  return nullptr;
}

void fill(Record& record, const char* program, uint32_t state) {
  record.flags = 0;
  record.pid = os_thread_id();  // of the only thread, or of the main one
  record.uid = 0;
  record.pid_namespace = 0;
  record.begin_ms = clock_ms();
  record.beat_ms = 0;
  memcpy(record.program, program, sizeof record.program);
  memset(record.reason, 0, sizeof record.reason);
  std::atomic_ref<uint32_t>(record.state).store(state, std::memory_order_release);
}

// In the mapping that is there; where that is full, in a new file.
Record* enter(const char* program, uint32_t state) {
  Record* record = take_record();
  if (record == nullptr) {
    if (run_file::File* const another = make_file(); another != nullptr) {
      if (g_file != nullptr) (void)sys::munmap(g_file, run_file::kFileBytes);
      g_file = another;
      record = take_record();
    } else if (g_file != nullptr) {
      std::atomic_ref<uint32_t>(g_file->header.left_out).fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (record != nullptr) fill(*record, program, state);
  return record;
}

// One that ships, or is about to.
bool is_shipping(Record& record, uint64_t now_ms) {
  const uint32_t state = get(record.state);
  const uint32_t flags = get(record.flags);
  if (state == run_file::kForked) return now_ms - get(record.begin_ms) < kFreshForkMs;
  if (state != run_file::kLoaded || (flags & run_file::kEnded) != 0) return false;
  const uint64_t beat_ms = get(record.beat_ms);
  return now_ms - (beat_ms != 0 ? beat_ms : get(record.begin_ms)) < kSilentMs;
}

}  // namespace

void enter_run(const Settings& settings) {
  if (settings.run[0] == '\0' || g_file != nullptr) return;
  memcpy(g_directory, settings.run, sizeof g_directory);
  char path[1024];
  const size_t length = read_executable_path(path, sizeof path);
  char program[sizeof Record::program];
  copy_end(program, sizeof program, path, length);
  g_record.store(enter(program, run_file::kForked), std::memory_order_relaxed);
}

void enter_run_in_child(bool follows, const char* why_off) {
  Record* const parent = g_record.exchange(nullptr, std::memory_order_relaxed);
  if (parent == nullptr || !follows) return;
  char program[sizeof Record::program];
  memcpy(program, parent->program, sizeof program);
  if (why_off == nullptr) {
    g_record.store(enter(program, run_file::kForked), std::memory_order_relaxed);
    return;
  }
  Record* const record = take_record();
  if (record == nullptr) {
    std::atomic_ref<uint32_t>(g_file->header.left_out).fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint32_t uid = parent->uid;
  const uint64_t pid_namespace = parent->pid_namespace;
  fill(*record, program, run_file::kTaken);
  record->uid = uid;
  record->pid_namespace = pid_namespace;
  (void)copy_utf8(record->reason, sizeof record->reason, why_off, strlen(why_off));
  record->flags = run_file::kFailed | run_file::kEnded;
  std::atomic_ref<uint32_t>(record->state).store(run_file::kLoaded, std::memory_order_release);
}

// Here, and not when it was forked: a child in a sandbox may be allowed little, and most children
// become another program at once.
void note_run_start() {
  Record* record = g_record.load(std::memory_order_relaxed);
  if (record == nullptr) return;
  if (get(record->state) == run_file::kFree ||
      get(record->pid) != static_cast<uint32_t>(sys::getpid())) {
    // It was silent for so long that collectctl took it for gone.
    char program[sizeof record->program];
    memcpy(program, record->program, sizeof program);
    record = enter(program, run_file::kTaken);
    g_record.store(record, std::memory_order_relaxed);
    if (record == nullptr) return;
  }
  put(record->uid, static_cast<uint32_t>(sys::geteuid()));
  put(record->pid_namespace, pid_namespace());
  put(record->flags, get(record->flags) & run_file::kRecorded);
  put(record->beat_ms, clock_ms());
  std::atomic_ref<uint32_t>(record->state).store(run_file::kLoaded, std::memory_order_release);
}

void note_run_failure(const char* reason) {
  if (reason != nullptr) {
    note_run_start();
    note_run_status(reason);
  }
  set_flag(run_file::kFailed | run_file::kEnded);
}

void note_run_recorded() {
  set_flag(run_file::kRecorded);
}

void note_run_beat(uint64_t now_ms) {
  Record* const record = g_record.load(std::memory_order_relaxed);
  if (record != nullptr) put(record->beat_ms, now_ms);
}

void note_run_outlives() {
  set_flag(run_file::kOutlives);
}

void note_run_link(bool is_up) {
  if (is_up) {
    set_flag(run_file::kConnected | run_file::kLinked);
    return;
  }
  Record* const record = g_record.load(std::memory_order_relaxed);
  if (record == nullptr || (get(record->flags) & run_file::kLinked) == 0) return;
  std::atomic_ref<uint32_t>(record->flags)
      .fetch_and(~uint32_t{run_file::kLinked}, std::memory_order_release);
}

void note_run_status(const char* sentence) {
  Record* const record = g_record.load(std::memory_order_relaxed);
  if (record == nullptr) return;
  if ((get(record->flags) & run_file::kEnded) != 0) return;  // what it ended with says more
  // One writer at a time; who reads meanwhile gets a part of both.
  (void)copy_utf8(record->reason, sizeof record->reason, sentence, strlen(sentence));
}

void note_run_ended() {
  set_flag(run_file::kEnded);
}

bool run_waits_for_first_event() {
  Record* const record = g_record.load(std::memory_order_relaxed);
  return record != nullptr && (get(record->flags) & run_file::kRecorded) == 0;
}

bool is_run_over() {
  return g_file != nullptr && get(g_file->header.is_over) != 0;
}

void await_namespace(uint64_t bound_ms) {
  Record* const own = g_record.load(std::memory_order_relaxed);
  if (own == nullptr) return;
  const uint64_t begin_ms = clock_ms();
  for (uint64_t now_ms = begin_ms; now_ms - begin_ms < bound_ms; now_ms = clock_ms()) {
    bool any = false;
    for (Record& record : g_file->records) {
      if (get(record.state) == run_file::kFree) continue;
      any = any || (&record != own && record.pid_namespace == own->pid_namespace &&
                    is_shipping(record, now_ms));
    }
    if (!any) return;
    const timespec pause{0, 1000000};
    (void)sys::nanosleep(&pause, nullptr);
  }
}

bool is_run_range(uintptr_t begin, uintptr_t end) {
  const auto at = reinterpret_cast<uintptr_t>(g_file);
  return g_file != nullptr && begin < at + run_file::kFileBytes && end > at;
}

}  // namespace collect::agent

#else

// collectctl runs nothing here.
namespace collect::agent {

void enter_run(const Settings&) {}
void enter_run_in_child(bool, const char*) {}
void note_run_start() {}
void note_run_failure(const char*) {}
void note_run_recorded() {}
void note_run_beat(uint64_t) {}
void note_run_outlives() {}
void note_run_link(bool) {}
void note_run_status(const char*) {}
void note_run_ended() {}
bool run_waits_for_first_event() {
  return false;
}
bool is_run_over() {
  return false;
}
void await_namespace(uint64_t) {}
bool is_run_range(uintptr_t, uintptr_t) {
  return false;
}

}  // namespace collect::agent

#endif
