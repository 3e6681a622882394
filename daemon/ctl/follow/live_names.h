// Names of functions of a session that still records, looked up as they turn up: by the collector's
// own way (daemon/symbolize), on a thread of its own, so that no one waits for a large debug file.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "daemon/symbolize/symbolizer.h"
#include "storage/read/session_manifest.h"

namespace collect::ctl::follow {

class LiveNames {
 public:
  // Without a symbolizer nothing is looked up: functions have the names that the manifest has.
  explicit LiveNames(std::optional<symbolize::SymbolizerOptions> symbolizer)
      : symbolizer_(std::move(symbolizer)) {}
  ~LiveNames();
  LiveNames(const LiveNames&) = delete;
  LiveNames& operator=(const LiveNames&) = delete;

  // The name, or that of its module and the offset. Null: it is being looked up; ask again.
  const std::string* name_of(uint64_t function_id);
  // What is to be looked up is, as soon as no other lookup runs. `manifest` has the modules.
  void look_up(const std::string& manifest, const read::SessionManifest& said);
  // look_up() at once, and waits for it: kSeedNamesTime at most.
  void finish(const std::string& manifest, const read::SessionManifest& said);

 private:
  using Clock = std::chrono::steady_clock;
  using Names = std::vector<std::pair<uint64_t, std::string>>;

  void wait();
  void take_found();
  void run(const std::string& manifest, const std::vector<uint64_t>& ids);
  void keep(uint64_t function_id, std::string name);

  const std::optional<symbolize::SymbolizerOptions> symbolizer_;
  std::unordered_map<uint64_t, std::string> names_;
  std::unordered_set<uint64_t> wanted_;
  std::vector<uint64_t> in_lookup_;
  std::string unnamed_;  // the last answer about a function beyond kMaxNames
  std::optional<read::SessionManifest> said_;
  std::unique_ptr<read::NameTable> table_;
  std::jthread lookup_;
  Clock::time_point next_lookup_{};
  std::atomic<bool> stop_{false};
  std::atomic<bool> is_done_{false};
  // Belong to the thread, until is_done_ says that it has ended.
  Names found_;
  Clock::duration took_{};
};

}  // namespace collect::ctl::follow
