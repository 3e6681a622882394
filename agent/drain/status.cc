#include "agent/drain/status.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace collect::agent {
namespace {

// Readers get a pointer and may use it for a while, so a sentence is not overwritten at the next
// change, but several changes later.
constexpr uint32_t kSentences = 16;
char g_sentences[kSentences][kStatusBytes];
uint32_t g_next_sentence = 0;
std::atomic<const char*> g_status{"the agent has not been started"};
std::atomic<bool> g_log{false};

}  // namespace

void set_status(const char* first, const char* second, const char* third, const char* fourth) {
  char* const sentence = g_sentences[g_next_sentence];
  char built[kStatusBytes] = {};
  Text(built, sizeof built).add(first).add(second).add(third).add(fourth);
  if (std::strcmp(built, status()) == 0) return;
  g_next_sentence = (g_next_sentence + 1) % kSentences;
  std::memcpy(sentence, built, sizeof built);
  // Pairs with the acquire in status(): the reader sees the whole sentence.
  g_status.store(sentence, std::memory_order_release);
  log_line(sentence);
}

const char* status() {
  return g_status.load(std::memory_order_acquire);
}

void enable_log(bool enabled) {
  g_log.store(enabled, std::memory_order_relaxed);
}

void log_line(const char* text) {
  if (!g_log.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  char line[kStatusBytes + 64];
  Text out(line, sizeof line);
  out.add("collect agent (").number(static_cast<uint64_t>(getpid())).add("): ");
  out.add(text).add("\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, out.size());
  errno = saved_errno;
}

}  // namespace collect::agent
