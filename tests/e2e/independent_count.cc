#include "tests/e2e/independent_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace collect::e2e {

uint64_t IndependentCount::events() const {
  uint64_t sum = 0;
  for (const CountedThread& thread : threads) sum += thread.calls + thread.returns;
  return sum;
}

IndependentCount read_count(const std::string& path, int pid) {
  IndependentCount count;
  std::ifstream file(path + "." + std::to_string(pid));
  EXPECT_TRUE(file.good()) << "the program wrote no " << path << "." << pid;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "thread") {
      CountedThread thread;
      words >> thread.thread_id >> thread.calls >> thread.returns >> std::hex >> thread.hash;
      count.threads.push_back(thread);
    } else if (kind == "function") {
      CountedFunction function;
      words >> function.module >> std::hex >> function.offset >> std::dec >> function.calls;
      count.functions.push_back(function);
    }
    EXPECT_FALSE(words.fail()) << "not a line of the counter: " << line;
  }
  std::sort(count.threads.begin(), count.threads.end());
  std::sort(count.functions.begin(), count.functions.end());
  return count;
}

std::vector<int> counted_processes(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string prefix = whole.filename().string() + ".";
  std::vector<int> pids;
  for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) pids.push_back(std::stoi(name.substr(prefix.size())));
  }
  return pids;
}

}  // namespace collect::e2e
