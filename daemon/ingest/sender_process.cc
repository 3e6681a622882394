#include "daemon/ingest/sender_process.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace collect::ingest {
namespace {

constexpr int kStateField = 3;  // of /proc/PID/stat, as proc(5) counts them
constexpr int kBeginField = 22;

uint64_t own_pid_namespace() {
  struct stat found{};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace

std::optional<uint64_t> process_begin(uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = kStateField; fields >> field; ++number) {
    if (number == kStateField && (field == "Z" || field == "X")) return std::nullopt;
    if (number != kBeginField) continue;
    if (field.find_first_not_of("0123456789") != std::string::npos || field.size() > 19) break;
    return std::stoull(field);
  }
  return std::nullopt;
}

void SenderProcess::note(const wire::Hello& hello, bool is_local) {
  pid_ = 0;
  const uint64_t ours = own_pid_namespace();
  if (!is_local || ours == 0 || hello.pid_namespace() != ours || hello.sender_pid() == 0) return;
  const auto begin = process_begin(hello.sender_pid());
  if (!begin) return;
  pid_ = hello.sender_pid();
  begin_ = *begin;
}

bool SenderProcess::is_gone() const {
  return pid_ != 0 && process_begin(pid_) != begin_;
}

}  // namespace collect::ingest
