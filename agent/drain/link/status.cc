#include "agent/drain/link/status.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/run_records.h"
#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

// Readers get a pointer and may use it for a while, so a sentence is not overwritten at the next
// change, but several changes later.
constexpr uint32_t kSentences = 16;
struct alignas(kSharedPage) StatusState {
  char sentences[kSentences][kStatusBytes] = {};
  uint32_t next = 0;
  std::atomic<const char*> now{nullptr};
};
constinit StatusState g_status;
std::atomic<bool> g_log{false};
pid_t g_log_process = 0;  // 0: this one

}  // namespace

bool share_status() {
  return share(g_status);
}

void set_status(const char* first, const char* second, const char* third, const char* fourth) {
  char* const sentence = g_status.sentences[g_status.next];
  char built[kStatusBytes] = {};
  Text(built, sizeof built).add(first).add(second).add(third).add(fourth);
  if (std::strcmp(built, status()) == 0) return;
  g_status.next = (g_status.next + 1) % kSentences;
  std::memcpy(sentence, built, sizeof built);
  // Pairs with the acquire in status(): the reader sees the whole sentence.
  g_status.now.store(sentence, std::memory_order_release);
  note_run_status(sentence);
  log_line(sentence);
}

const char* status() {
  const char* const sentence = g_status.now.load(std::memory_order_acquire);
  return sentence != nullptr ? sentence : "the agent has not been started";
}

void log_as(pid_t process) {
  g_log_process = process;
}

void enable_log(bool enabled) {
  g_log.store(enabled, std::memory_order_relaxed);
}

void log_line(const char* text) {
  if (!g_log.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  char line[kStatusBytes + 64];
  Text out(line, sizeof line);
  const pid_t process = g_log_process != 0 ? g_log_process : sys::getpid();
  out.add("collect agent (").number(static_cast<uint64_t>(process)).add("): ");
  out.add(text).add("\n");
  [[maybe_unused]] const ssize_t written = sys::write(STDERR_FILENO, line, out.size());
  errno = saved_errno;
}

}  // namespace collect::agent
