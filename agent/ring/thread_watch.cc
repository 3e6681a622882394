// What the drain asks the system about the threads that write: their names, and whether they live.
#include <string.h>

#include "agent/platform/threads.h"
#include "agent/ring/short_calls.h"
#include "agent/ring/stream.h"

namespace collect::agent {
namespace {

uint32_t newest_polled_stream = 0;

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
  newest_polled_stream = 0;
}

void stream_info(Stream& stream, StreamInfo& info) {
  if (!stream.ended) {
    // The drain process is another process.
    const pid_t process = memory_is_shared() ? traced_process() : 0;
    read_thread_name(process, stream.thread_id, stream.name, sizeof stream.name);
  }
  info.stream_id = stream.stream_id;
  info.recording = stream.recording;
  info.thread_id = stream.thread_id;
  memcpy(info.name, stream.name, sizeof info.name);
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
  show_long_calls();
}

}  // namespace collect::agent
