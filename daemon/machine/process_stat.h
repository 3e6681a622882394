// What /proc says of a process or a thread of this machine (proc(5), /proc/PID/stat).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace collect {

struct ProcessStat {
  char state = '?';
  uint64_t begin_ticks = 0;  // since boot; distinguishes processes that had the same number
  // It waits for its parent, or for nothing any more.
  bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Empty: there is none, or it can't be read (no /proc, hidepid).
std::optional<ProcessStat> read_process_stat(uint32_t pid);
std::optional<ProcessStat> read_process_stat(const std::string& path);

}  // namespace collect
