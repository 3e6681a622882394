#include "daemon/ctl/run/drain_processes.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace collect::ctl {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

size_t count_drain_processes(const std::string& tag) {
  // Entries of an environment end with a zero byte each.
  const std::string wanted = "COLLECT_TAG=" + tag + std::string(1, '\0');
  size_t count = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_all(entry->path() / "comm") != "collect-drain\n") continue;
    if (read_all(entry->path() / "environ").find(wanted) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace collect::ctl
