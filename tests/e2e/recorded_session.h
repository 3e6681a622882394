// A sealed session as a test looks at it: the manifest as plain JSON, and the bytes of index.atf
// read here by offset, so that our own reader is not what vouches for our own writer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/independent_count.h"

namespace collect::e2e {

struct SessionTotals {
  uint64_t threads = 0;
  uint64_t events = 0;
  uint64_t lost = 0;  // index events, those of threads without a stream included
  uint64_t detail_records = 0;
};

class RecordedSession {
 public:
  explicit RecordedSession(const std::string& directory);
  ~RecordedSession();
  RecordedSession(RecordedSession&&) noexcept;
  RecordedSession& operator=(RecordedSession&&) noexcept;

  const std::string& directory() const { return directory_; }
  const nlohmann::json& manifest() const { return *manifest_; }
  std::string state() const;
  SessionTotals totals() const;

  // Every event of thread_<n>, in the order of the file.
  struct StoredEvent {
    uint64_t timestamp_ns = 0;
    uint64_t function_id = 0;
    bool is_return = false;  // or another end of the call
    bool is_exception = false;
  };
  void for_each_event(uint32_t n, const std::function<void(const StoredEvent&)>& each) const;

  // What the files hold for each thread, sorted: to be equal to the counter's. Functions of
  // libraries are left out of the hash as the counter leaves out nothing: use it for programs
  // without plugins.
  std::vector<CountedThread> count_threads() const;
  // Calls of each function outside module 0, sorted.
  std::vector<CountedFunction> count_functions() const;

 private:
  std::string directory_;
  std::unique_ptr<nlohmann::json> manifest_;
};

// The pid_<pid> directories below <root>/session_*, oldest first.
std::vector<std::string> session_directories(const std::string& root, int pid = 0);

// Processes that are drain processes of programs whose environment, of which theirs is a copy,
// names `scratch`. While one is there, another session of its program may come.
std::vector<int> drain_processes(const std::string& scratch);

// Waits until each session of this process is sealed, and opens them.
std::vector<RecordedSession> sealed_sessions(const std::string& root, int pid,
                                             seconds limit = seconds(60));

// Everything that was counted is in the files, thread by thread, in order.
void expect_exactly(const RecordedSession& session, const IndependentCount& count);
// Everything that was counted is in the files or counted as lost; the session is complete.
void expect_accounted(const RecordedSession& session, const IndependentCount& count);

}  // namespace collect::e2e
