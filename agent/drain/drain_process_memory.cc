#include "agent/drain/drain_process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/run_records.h"
#include "agent/shared_memory.h"
#include "formats/core/text/sanitized.h"

namespace collect::agent {
namespace {

constexpr uintptr_t kLeastUnmapped = 1024 * 1024;
constexpr int kMaxDescriptors = 65536;  // closed one by one where the system can't close a range

// One line of /proc/<pid>/maps: "begin-end rwxp offset device inode path".
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool writable = false;
  bool shared = false;
  bool anonymous = false;
};

const char* take_hex(const char* at, uintptr_t& value) {
  value = 0;
  for (;; ++at) {
    if (*at >= '0' && *at <= '9') {
      value = value * 16 + static_cast<uintptr_t>(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      value = value * 16 + static_cast<uintptr_t>(*at - 'a' + 10);
    } else {
      return at;
    }
  }
}

bool parse(const char* line, Mapping& mapping) {
  const char* at = take_hex(line, mapping.begin);
  if (*at != '-') return false;
  at = take_hex(at + 1, mapping.end);
  if (at[0] != ' ' || std::strlen(at) < 6) return false;
  mapping.writable = at[2] == 'w';
  mapping.shared = at[4] == 's';
  at += 5;
  for (int field = 0; field < 3 && *at == ' '; ++field) {  // offset, device, inode
    ++at;
    if (field == 2) mapping.anonymous = at[0] == '0' && (at[1] == ' ' || at[1] == '\0');
    while (*at != ' ' && *at != '\0') ++at;
  }
  return true;
}

// Calls `visit` for each line of a file under /proc, cut at the buffer's size.
template <class Visit>
void for_each_line(const char* path, Visit visit) {
  static char text[8192];  // drain process only
  const int file = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  size_t used = 0;
  for (;;) {
    const ssize_t got = sys::read(file, text + used, sizeof text - 1 - used);
    if (got <= 0) break;
    used += static_cast<size_t>(got);
    size_t begin = 0;
    for (size_t at = 0; at < used; ++at) {
      if (text[at] != '\n') continue;
      text[at] = '\0';
      visit(text + begin);
      begin = at + 1;
    }
    if (begin == 0) begin = used;  // longer than any line that matters
    std::memmove(text, text + begin, used - begin);
    used -= begin;
  }
  (void)sys::close(file);
}

struct Place {
  uintptr_t begin;
  uintptr_t end;
  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};

// The shadow stack, where the CPU keeps return addresses apart; 0 where there is none.
uintptr_t shadow_stack() {
  uintptr_t top = 0;
#if defined(__x86_64__)
  asm volatile("rdsspq %0" : "+r"(top));
#endif
  return top;
}

void close_between(unsigned first, unsigned last) {
  if (first > last) return;
#if defined(SYS_close_range)
  if (sys::call(SYS_close_range, first, last, 0) == 0) return;
#endif
  rlimit limit{};
  unsigned end = kMaxDescriptors;
  if (sys::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end) {
    end = static_cast<unsigned>(limit.rlim_cur);
  }
  for (unsigned fd = first; fd <= last && fd < end; ++fd) (void)sys::close(static_cast<int>(fd));
}

void replace_by_nothing(int fd) {
  const int nothing = sys::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) {
    (void)sys::close(fd);
    return;
  }
  if (nothing == fd) return;
  (void)sys::dup2(nothing, fd);
  (void)sys::close(nothing);
}

}  // namespace

void drop_program_memory(const OwnObject& own) {
  if (kIsSanitized || !own.calls_are_bound) return;
  const uintptr_t needed[] = {reinterpret_cast<uintptr_t>(__builtin_frame_address(0)),
                              reinterpret_cast<uintptr_t>(__builtin_thread_pointer()),
                              shadow_stack()};
  for_each_line("/proc/self/maps", [&](const char* line) {
    Mapping mapping;
    if (!parse(line, mapping)) return;
    const bool large = mapping.end - mapping.begin >= kLeastUnmapped;
    const bool ours =
        is_shared_range(mapping.begin, mapping.end) || is_run_range(mapping.begin, mapping.end);
    if (mapping.shared ? ours : !(mapping.writable && mapping.anonymous && large)) return;
    if (!mapping.shared && mapping.begin < own.end && mapping.end > own.begin) return;
    const Place place{mapping.begin, mapping.end};
    for (const uintptr_t address : needed) {
      if (place.contains(address)) return;
    }
    (void)sys::munmap(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin);
  });
}

void rename_command_line() {
  static constexpr char kName[] = "collect-drain";
  constexpr int kBeginField = 48;  // of /proc/<pid>/stat
  for_each_line("/proc/self/stat", [](const char* line) {
    const char* at = std::strrchr(line, ')');
    if (at == nullptr) return;
    uintptr_t places[2] = {0, 0};
    int field = 2;
    for (++at; *at != '\0'; ++at) {
      if (*at != ' ') continue;
      ++field;
      if (field != kBeginField && field != kBeginField + 1) continue;
      uintptr_t& place = places[field - kBeginField];
      for (const char* digit = at + 1; *digit >= '0' && *digit <= '9'; ++digit) {
        place = place * 10 + static_cast<uintptr_t>(*digit - '0');
      }
    }
    if (places[0] == 0 || places[1] < places[0] + sizeof kName) return;
    auto* const text = reinterpret_cast<char*>(places[0]);
    std::memset(text, 0, places[1] - places[0]);
    std::memcpy(text, kName, sizeof kName);
  });
}

void keep_descriptors(int first, int second, bool keep_errors) {
  const unsigned low = static_cast<unsigned>(first < second ? first : second);
  const unsigned high = static_cast<unsigned>(first < second ? second : first);
  close_between(3, low - 1);
  close_between(low + 1, high - 1);
  close_between(high + 1, ~0u);
  replace_by_nothing(0);
  replace_by_nothing(1);
  if (!keep_errors) replace_by_nothing(2);
}

void drop_errors() {
  replace_by_nothing(2);
}

}  // namespace collect::agent
