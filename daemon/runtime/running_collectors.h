// The collectors of this user that run on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/runtime/runtime_directory.h"

namespace collect::runtime {

inline constexpr size_t kMaxRunningCollectors = 64;  // of more, the first by name

struct RunningCollector {
  uint32_t pid = 0;     // as its own PID namespace has it
  std::string control;  // an address that can be dialled from here
  std::string root;     // absolute

  bool operator==(const RunningCollector&) const = default;
};

// Makes this process known as a collector until the object goes, or the process ends in any way.
class CollectorNotice {
 public:
  static Result<CollectorNotice> post(const RunningCollector& collector);
  CollectorNotice(CollectorNotice&&) = default;
  CollectorNotice& operator=(CollectorNotice&&) = delete;
  ~CollectorNotice();

 private:
  CollectorNotice(RuntimeDirectory directory, std::string name, Descriptor lock)
      : directory_(std::move(directory)), name_(std::move(name)), lock_(std::move(lock)) {}

  RuntimeDirectory directory_;
  std::string name_;
  Descriptor lock_;
};

// Sorted by address. Entries of collectors that were killed are removed.
std::vector<RunningCollector> running_collectors();

}  // namespace collect::runtime
