// Counts what a conversion leaves out by the name of its kind. Names are a file's own words: beyond
// a limit they are counted together, so that no file makes the list long.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "storage/convert/convert_log.h"

namespace collect::convert {

class EventTally {
 public:
  static constexpr size_t kMaxNames = 1000;
  static constexpr size_t kMaxNameBytes = 200;

  void add(std::string_view name) {
    name = name.substr(0, kMaxNameBytes);
    auto known = counts_.find(name);
    if (known == counts_.end()) {
      if (counts_.size() == kMaxNames) {
        ++others_;
        return;
      }
      known = counts_.emplace(name, 0).first;
    }
    ++known->second;
  }
  // "PollEnd: <why>", so many times.
  void report(ConvertLog& log, std::string_view why) const {
    for (const auto& [name, count] : counts_) {
      log.leave_out(fmt::format("{}: {}", name, why), count);
    }
    log.leave_out("events of still other names: " + std::string(why), others_);
  }

 private:
  std::map<std::string, uint64_t, std::less<>> counts_;
  uint64_t others_ = 0;
};

}  // namespace collect::convert
