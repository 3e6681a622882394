// What the drain asks the system about the threads that write: their names, and whether they live.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/ring/stream.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

uint32_t newest_polled_stream = 0;

void read_thread_name(uint32_t thread_id, char (&name)[32]) {
  char path[64];
  Text text(path, sizeof path);
  text.add("/proc/");
  // The companion is another process; the process itself may not know its number in this /proc.
  if (memory_is_shared()) {
    text.number(static_cast<uint64_t>(traced_process()));
  } else {
    text.add("self");
  }
  text.add("/task/").number(thread_id).add("/comm");
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // gone already: what was read before stays
  const ssize_t bytes = read(file, name, sizeof name - 1);
  (void)close(file);
  if (bytes <= 0) return;
  name[name[bytes - 1] == '\n' ? bytes - 1 : bytes] = '\0';
}

// A stream younger than `newest_polled` ends every older one of the same thread id: the number was
// given to a new thread, which has a stream of its own.
void end_namesakes(uint32_t newest_polled) {
  for_each_stream([&](Stream& young) {
    if (young.stream_id <= newest_polled) return;
    for_each_stream([&](Stream& old) {
      if (old.ended || old.thread_id != young.thread_id || old.stream_id >= young.stream_id) return;
      old.ended = true;
      old.end_ns = young.start_ns;
    });
  });
}

}  // namespace

void threads_init() {
  newest_polled_stream = 0;
}

void stream_info(Stream& stream, StreamInfo& info) {
  if (!stream.ended) read_thread_name(stream.thread_id, stream.name);
  info.stream_id = stream.stream_id;
  info.recording = stream.recording;
  info.thread_id = stream.thread_id;
  memcpy(info.name, stream.name, sizeof info.name);
  info.start_ns = stream.start_ns;
}

void poll_threads() {
  const pid_t pid = traced_process();
  if (writers_gone()) return;
  const uint32_t newest_before = newest_polled_stream;
  for_each_stream([&](Stream& stream) {
    if (stream.stream_id > newest_polled_stream) newest_polled_stream = stream.stream_id;
    if (stream.ended) return;
    if (syscall(SYS_tgkill, pid, stream.thread_id, 0) == -1 && errno == ESRCH) {
      stream.ended = true;
      stream.end_ns = now_ns();
    }
  });
  if (newest_polled_stream != newest_before) end_namesakes(newest_before);
}

bool only_this_thread_left() {
  struct stat tasks;
  // A folder for each thread, and two links of its own: an ended main thread keeps its folder.
  if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 4) return false;
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[256];
  const ssize_t bytes = read(file, text, sizeof text - 1);
  (void)close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // "pid (name) state …": the name may hold anything, so the state is found from its end.
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'Z';
}

}  // namespace collect::agent
