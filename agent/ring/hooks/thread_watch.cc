// What the drain asks the system about the threads that write: their names, and whether they live.
#include <string.h>

#include "agent/platform/threads.h"
#include "agent/ring/hooks/shared_threads.h"
#include "agent/ring/hooks/short_calls.h"
#include "agent/ring/hooks/unwinding.h"
#include "agent/ring/stream.h"

namespace collect::agent {
namespace {

uint32_t newest_polled_stream = 0;
uint32_t polls = 0;
uint32_t next_named_slot = 0;  // where the looks at names continue
// The thread that starts the agent, as a rule the main one.
uint32_t first_thread = 0;
char first_name[sizeof Stream::name] = {};

// What the calling thread called itself, before it had a stream or after.
__thread char tls_own_name[kOwnNameBytes] COLLECT_TLS_MODEL = {};

void put_own_name(OwnName& own, const char* name, uint64_t since_ns) {
  uint64_t words[2];
  memcpy(words, name, sizeof words);
  const uint32_t changes = own.changes.load(std::memory_order_relaxed);
  own.changes.store(changes + 1, std::memory_order_relaxed);
  // Each pairs with an acquire of read_own_name: who sees one of these sees that odd number.
  own.text[0].store(words[0], std::memory_order_release);
  own.text[1].store(words[1], std::memory_order_release);
  own.since_ns.store(since_ns, std::memory_order_release);
  own.changes.store(changes + 2, std::memory_order_release);
}

struct SeenName {
  uint32_t changes = 0;  // 0: there is none, or it changes just now
  char text[kOwnNameBytes];
  uint64_t since_ns = 0;
};

SeenName read_own_name(const OwnName& own) {
  SeenName seen;
  const uint32_t changes = own.changes.load(std::memory_order_acquire);
  if (changes % 2 != 0) return seen;
  const uint64_t words[2] = {own.text[0].load(std::memory_order_acquire),
                             own.text[1].load(std::memory_order_acquire)};
  memcpy(seen.text, words, sizeof words);
  seen.since_ns = own.since_ns.load(std::memory_order_acquire);
  if (own.changes.load(std::memory_order_relaxed) == changes) seen.changes = changes;
  return seen;
}

// The next kNameLooks streams in turn of which one is due.
void look_at_names() {
  ++polls;
  const uint32_t slots = stream_slots();
  uint32_t looks = 0;
  for (uint32_t i = 0; i < slots && looks < kNameLooks; ++i) {
    if (next_named_slot >= slots) next_named_slot = 0;
    Stream* const stream = stream_at(next_named_slot++);
    if (stream == nullptr || stream->ended || polls < stream->next_look) continue;
    ++looks;
    look_at_name(*stream);
  }
}

// A stream younger than `newest_polled` ends every older one of the same thread id: the number was
// given to a new thread, which has a stream of its own.
void end_namesakes(uint32_t newest_polled) {
  for_each_stream([&](Stream& young) {
    if (young.stream_id <= newest_polled) return;
    for_each_stream([&](Stream& old) {
      if (old.ended || old.thread_id != young.thread_id || old.stream_id >= young.stream_id) return;
      end_stream(old, young.start_ns);
    });
  });
}

}  // namespace

void threads_init() {
  newest_polled_stream = polls = next_named_slot = 0;
  first_thread = os_thread_id();
  (void)read_thread_name(0, first_thread, first_name, sizeof first_name);
}

void note_own_name(const char* name) {
  const size_t bytes = strnlen(name, sizeof tls_own_name - 1);
  memset(tls_own_name, 0, sizeof tls_own_name);
  memcpy(tls_own_name, name, bytes);
  if (follows_this_thread()) put_own_name(tls_stream->own_name, tls_own_name, now_ns());
}

void take_own_name(Stream& stream) {
  if (tls_own_name[0] != '\0') put_own_name(stream.own_name, tls_own_name, stream.start_ns);
}

void look_at_name(Stream& stream) {
  const uint32_t interval = 1u << stream.looks;
  stream.next_look = polls + interval;
  if (interval < kRarestNameLook) ++stream.looks;
  const SeenName own = read_own_name(stream.own_name);
  const bool is_new = own.changes != 0 && own.changes != stream.own_seen;
  if (own.changes != 0) stream.own_seen = own.changes;
  char name[sizeof stream.name] = {};
  // The drain process is another process.
  const pid_t process = memory_is_shared() ? traced_process() : 0;
  const bool is_read = !stream.ended && !writers_gone() &&
                       read_thread_name(process, stream.thread_id, name, sizeof name);
  if (!is_read && is_new) {
    memcpy(name, own.text, sizeof own.text);
  } else if (!is_read) {
    // The program ended before the drain process looked.
    if (stream.names != 0 || stream.thread_id != first_thread) return;
    memcpy(name, first_name, sizeof name);
  }
  if (stream.names != 0 && strcmp(name, stream.name) == 0) return;
  if (own.changes != 0 && strcmp(name, own.text) == 0) {
    stream.named_ns = own.since_ns > stream.start_ns ? own.since_ns : 0;
  } else if (stream.names != 0) {
    stream.named_ns = now_ns();
  }
  memcpy(stream.name, name, sizeof name);
  ++stream.names;
  stream.looks = 0;
}

uint32_t stream_names(Stream& stream) {
  return stream.names;
}

void stream_info(Stream& stream, StreamInfo& info) {
  look_at_name(stream);
  info.stream_id = stream.stream_id;
  info.recording = stream.recording;
  info.thread_id = stream.thread_id;
  memcpy(info.name, stream.name, sizeof info.name);
  info.named_ns = stream.named_ns;
  info.names = stream.names;
  info.start_ns = stream.start_ns;
}

void poll_threads() {
  if (writers_gone()) return;
  const LivingThreads living(traced_process());
  const uint32_t newest_before = newest_polled_stream;
  for_each_stream([&](Stream& stream) {
    if (stream.stream_id > newest_polled_stream) newest_polled_stream = stream.stream_id;
    if (stream.ended) return;
    if (!living.contains(stream.thread_id)) end_stream(stream, now_ns());
  });
  if (newest_polled_stream != newest_before) end_namesakes(newest_before);
  streams_reap(living);
  look_at_names();
  poll_shared_threads();
  const auto main_thread = static_cast<uint32_t>(traced_process());
  set_program_is_filtered(is_filtered(memory_is_shared() ? traced_process() : 0, main_thread));
  show_long_calls();
}

}  // namespace collect::agent
