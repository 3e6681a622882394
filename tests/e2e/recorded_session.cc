#include "tests/e2e/recorded_session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The published layout, by offset: 64 bytes of header, 32-byte events, 64 bytes of footer.
constexpr size_t kHeader = 64;
constexpr size_t kFooter = 64;
constexpr size_t kEvent = 32;
constexpr size_t kVersionOffset = 5;
constexpr uint8_t kCall = 1;
constexpr uint8_t kException = 3;

constexpr size_t kSecondLength = sizeof "session_20260101_000000" - 1;

struct Event {
  uint64_t timestamp_ns;
  uint64_t function_id;
  uint8_t kind;
};

Event event_at(const uint8_t* bytes, uint8_t version) {
  Event event{};
  std::memcpy(&event.timestamp_ns, bytes, 8);
  std::memcpy(&event.function_id, bytes + 8, 8);
  event.kind = bytes[version == 1 ? 20 : 24];
  return event;
}

// Calls `each` for every event of one sealed index file.
void for_each_event(const std::string& path, const std::function<void(const Event&)>& each) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0) << path;
  struct stat status{};
  fstat(file, &status);
  const auto bytes = static_cast<size_t>(status.st_size);
  ASSERT_GE(bytes, kHeader + kFooter) << path << " is not sealed";
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  ASSERT_NE(mapped, MAP_FAILED) << path;
  const auto* data = static_cast<const uint8_t*>(mapped);
  EXPECT_EQ(std::memcmp(data, "ATI2", 4), 0) << path;
  EXPECT_EQ(std::memcmp(data + bytes - kFooter, "2ITA", 4), 0) << path << " has no footer";
  const size_t body = bytes - kHeader - kFooter;
  EXPECT_EQ(body % kEvent, 0u) << path;
  uint64_t before = 0;
  uint64_t backwards = 0;
  for (size_t at = kHeader; at + kEvent <= bytes - kFooter; at += kEvent) {
    const Event event = event_at(data + at, data[kVersionOffset]);
    backwards += event.timestamp_ns < before ? 1 : 0;
    before = event.timestamp_ns;
    each(event);
  }
  EXPECT_EQ(backwards, 0u) << path << ": times run backwards";
  munmap(mapped, bytes);
}

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

RecordedSession::RecordedSession(const std::string& directory)
    : directory_(directory),
      manifest_(std::make_unique<json>(
          json::parse(read_text_file(directory + "/manifest.json"), nullptr, false))) {
  EXPECT_TRUE(manifest_->is_object()) << directory << "/manifest.json is not JSON";
}
RecordedSession::~RecordedSession() = default;
RecordedSession::RecordedSession(RecordedSession&&) noexcept = default;
RecordedSession& RecordedSession::operator=(RecordedSession&&) noexcept = default;

std::string RecordedSession::state() const {
  return manifest_->value("state", std::string());
}

SessionTotals RecordedSession::totals() const {
  const json& totals = (*manifest_)["totals"];
  return {
      totals.value("threads", uint64_t{0}), totals.value("events", uint64_t{0}),
      totals.value("lost_events", uint64_t{0}) + totals.value("lost_without_stream", uint64_t{0}),
      totals.value("detail_records", uint64_t{0})};
}

void RecordedSession::for_each_event(uint32_t n,
                                     const std::function<void(const StoredEvent&)>& each) const {
  collect::e2e::for_each_event(
      directory_ + "/thread_" + std::to_string(n) + "/index.atf", [&each](const Event& event) {
        each(
            {event.timestamp_ns, event.function_id, event.kind != kCall, event.kind == kException});
      });
}

std::vector<CountedThread> RecordedSession::count_threads() const {
  std::vector<CountedThread> threads;
  for (const json& thread : (*manifest_)["threads"]) {
    CountedThread counted;
    counted.thread_id = thread.value("thread_id", 0u);
    counted.hash = kHashStart;
    const uint32_t n = thread.value("id", 0u);
    for_each_event(n, [&counted](const StoredEvent& event) {
      (event.is_return ? counted.returns : counted.calls)++;
      counted.hash = roll_hash(counted.hash, event.function_id & 0xFFFFFFFFu, event.is_return);
    });
    EXPECT_EQ(counted.calls + counted.returns, thread.value("events", uint64_t{0}))
        << "the manifest and thread_" << n << "/index.atf disagree";
    // A thread whose only events were lost has no counterpart to compare with.
    if (counted.calls + counted.returns > 0) threads.push_back(counted);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::vector<CountedFunction> RecordedSession::count_functions() const {
  std::map<uint64_t, std::string> modules;
  for (const json& module : (*manifest_)["modules"]) {
    modules[module.value("module_id", uint64_t{0})] =
        base_name(module.value("path", std::string()));
  }
  std::map<std::pair<std::string, uint64_t>, uint64_t> calls;
  for (const json& thread : (*manifest_)["threads"]) {
    for_each_event(thread.value("id", 0u), [&](const StoredEvent& event) {
      const uint64_t module = event.function_id >> 32;
      if (event.is_return || module == 0) return;
      EXPECT_TRUE(modules.contains(module)) << "module " << module << " is unknown";
      calls[{modules[module], event.function_id & 0xFFFFFFFFu}]++;
    });
  }
  std::vector<CountedFunction> functions;
  for (const auto& [key, count] : calls) functions.push_back({key.first, key.second, count});
  std::sort(functions.begin(), functions.end());
  return functions;
}

std::vector<std::string> session_directories(const std::string& root, int pid) {
  std::vector<std::tuple<std::string, unsigned long, std::string>> found;  // in the order of these
  std::error_code none;
  for (const auto& session : fs::directory_iterator(root, none)) {
    const std::string session_name = session.path().filename().string();
    if (!session_name.starts_with("session_")) continue;
    // The tenth of one second comes after the ninth, although it sorts before it.
    const std::string second = session_name.substr(0, kSecondLength);
    // What was made of a session comes behind it, by its path.
    const std::string recorded = session_name.substr(0, session_name.find("_atf"));
    const bool first = recorded.size() <= kSecondLength;
    const unsigned long place = first ? 1 : std::stoul(recorded.substr(kSecondLength + 1));
    for (const auto& process : fs::directory_iterator(session.path(), none)) {
      const std::string name = process.path().filename().string();
      // A second recording of the same process in the same second gets a distinct name.
      const std::string wanted = "pid_" + std::to_string(pid);
      if (!fs::exists(process.path() / "manifest.json", none)) continue;
      if (pid != 0 && name != wanted && !name.starts_with(wanted + "_")) continue;
      if (name.starts_with("pid_")) found.emplace_back(second, place, process.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> directories;
  for (auto& [second, place, directory] : found) directories.push_back(std::move(directory));
  return directories;
}

std::vector<int> drain_processes(const std::string& scratch) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_text_file(entry.path() / "comm") != "collect-drain\n") continue;
    // One that has ended and was not waited for by init yet has none.
    if (read_text_file(entry.path() / "environ").find(scratch) == std::string::npos) continue;
    found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<RecordedSession> sealed_sessions(const std::string& root, int pid, seconds limit) {
  std::vector<RecordedSession> sessions;
  const bool sealed = eventually(limit, [&] {
    sessions.clear();
    const std::vector<std::string> directories = session_directories(root, pid);
    for (const std::string& directory : directories) {
      sessions.emplace_back(directory);
      if (sessions.back().state() == "recording") return false;
    }
    return !sessions.empty();
  });
  EXPECT_TRUE(sealed) << "process " << pid << " has "
                      << (sessions.empty() ? "no session" : "a session that is not sealed")
                      << " in " << root;
  // Names come after the seal. A collector that was ended meanwhile leaves them to its next start.
  (void)eventually(std::min(limit, seconds(15)), [&sessions] {
    return std::all_of(sessions.begin(), sessions.end(), [](RecordedSession& session) {
      session = RecordedSession(session.directory());
      return session.manifest().value("symbols_state", std::string()) != "pending";
    });
  });
  return sessions;
}

void expect_exactly(const RecordedSession& session, const IndependentCount& count) {
  EXPECT_EQ(session.state(), "complete") << session.manifest().value("reason", std::string());
  EXPECT_EQ(session.totals().lost, 0u);
  EXPECT_EQ(session.totals().events, count.events());
  const std::vector<CountedThread> recorded = session.count_threads();
  ASSERT_EQ(recorded.size(), count.threads.size()) << session.directory();
  for (size_t i = 0; i < recorded.size(); ++i) {
    const CountedThread& have = recorded[i];
    const CountedThread& want = count.threads[i];
    EXPECT_EQ(have.thread_id, want.thread_id);
    EXPECT_EQ(have.calls, want.calls) << "thread " << want.thread_id;
    EXPECT_EQ(have.returns, want.returns) << "thread " << want.thread_id;
    EXPECT_EQ(have.hash, want.hash) << "thread " << want.thread_id << ": another order or function";
  }
}

void expect_accounted(const RecordedSession& session, const IndependentCount& count) {
  EXPECT_EQ(session.state(), "complete") << session.manifest().value("reason", std::string());
  const SessionTotals totals = session.totals();
  EXPECT_EQ(totals.events + totals.lost, count.events())
      << totals.events << " recorded, " << totals.lost << " lost, " << session.directory();
  uint64_t in_files = 0;
  for (const CountedThread& thread : session.count_threads()) {
    in_files += thread.calls + thread.returns;
  }
  EXPECT_EQ(in_files, totals.events);
}

}  // namespace collect::e2e
