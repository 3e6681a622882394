#include "daemon/machine/process_stat.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

namespace collect {
namespace {

constexpr int kStateField = 3;
constexpr int kBeginField = 22;

}  // namespace

std::optional<ProcessStat> read_process_stat(uint32_t pid) {
  return read_process_stat(fmt::format("/proc/{}/stat", pid));
}

std::optional<ProcessStat> read_process_stat(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::getline(file, text,
               '\0');  // unlike an iterator, it does not throw where a process ends meanwhile
  const size_t name_end = text.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> stat.state;
  for (int number = kStateField + 1; number < kBeginField; ++number) fields >> skipped;
  fields >> stat.begin_ticks;
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace collect
