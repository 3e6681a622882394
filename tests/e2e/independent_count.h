// What call_counter.c wrote down inside the traced program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collect::e2e {

struct CountedThread {
  uint32_t thread_id = 0;
  uint64_t calls = 0;
  uint64_t returns = 0;
  uint64_t hash = 0;

  auto operator<=>(const CountedThread&) const = default;
};

struct CountedFunction {
  std::string module;  // base name of the library
  uint64_t offset = 0;
  uint64_t calls = 0;

  auto operator<=>(const CountedFunction&) const = default;
};

struct IndependentCount {
  std::vector<CountedThread> threads;      // sorted
  std::vector<CountedFunction> functions;  // sorted

  uint64_t events() const;
};

// `path` without the process id, as in COUNT_FILE. A test failure when the file is not there.
IndependentCount read_count(const std::string& path, int pid);
// The processes that wrote a file.
std::vector<int> counted_processes(const std::string& path);

// The counter's rolling hash, for what was recorded.
inline constexpr uint64_t kHashStart = 14695981039346656037ull;
inline uint64_t roll_hash(uint64_t hash, uint64_t offset, bool is_return) {
  return (hash ^ ((offset << 1) | (is_return ? 1 : 0))) * 1099511628211ull;
}

}  // namespace collect::e2e
