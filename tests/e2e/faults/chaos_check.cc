#include "tests/e2e/faults/chaos_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr size_t kSlotBytes = 32;
constexpr seconds kSealLimit{90};  // a drain process process may try for a minute

unsigned leaf_of(uint64_t iteration) {
  return static_cast<unsigned>((iteration * 0x9E3779B97F4A7C15ull) >> 60);
}

// Function id -> N of leaf_N, as the manifests name them.
std::map<uint64_t, unsigned> leaves_of(const RecordedSession& session) {
  std::map<uint64_t, unsigned> leaves;
  for (const json& symbol : session.manifest().value("symbols", json::array())) {
    const std::string name = symbol.value("name", "");
    if (!name.starts_with("leaf_")) continue;
    const uint64_t id = std::stoull(symbol.value("function_id", "0"), nullptr, 16);
    leaves[id] = static_cast<unsigned>(std::stoul(name.substr(5)));
  }
  return leaves;
}

struct IndexGap {
  uint64_t before_seq = 0;
  uint64_t lost = 0;
  bool exact = true;  // not several merged into one
};

std::vector<IndexGap> gaps_of(const RecordedSession& session, uint32_t thread) {
  std::vector<IndexGap> gaps;
  for (const json& gap : session.manifest().value("gaps", json::array())) {
    if (gap.value("thread", UINT32_MAX) != thread || gap.value("lane", "") != "index") continue;
    gaps.push_back({gap.value("before_seq", uint64_t{0}), gap.value("lost", uint64_t{0}),
                    gap.value("merged", 1u) == 1});
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const IndexGap& a, const IndexGap& b) { return a.before_seq < b.before_seq; });
  return gaps;
}

// One thread of one session, in the program's own numbering of events.
struct Range {
  std::optional<uint64_t> first;  // the first event stored
  uint64_t end = 0;               // stored and lost
  uint64_t stored = 0;
  uint64_t lost = 0;
};

Range check_thread(const RecordedSession& session, const json& thread,
                   const std::map<uint64_t, unsigned>& leaves) {
  const uint32_t n = thread.value("id", 0u);
  const std::vector<IndexGap> gaps = gaps_of(session, n);
  const bool exact =
      std::all_of(gaps.begin(), gaps.end(), [](const IndexGap& gap) { return gap.exact; });
  Range range;
  uint64_t position = 0;
  uint64_t wrong = 0;
  auto gap = gaps.begin();
  session.for_each_event(n, [&](const RecordedSession::StoredEvent& event) {
    for (; gap != gaps.end() && gap->before_seq <= position; ++gap) range.lost += gap->lost;
    const uint64_t number = position++ + range.lost;
    if (!range.first) range.first = number;
    if (!exact) return;
    const auto leaf = leaves.find(event.function_id);
    const bool right = leaf != leaves.end() && leaf->second == leaf_of(number / 2) &&
                       event.is_return == (number % 2 == 1);
    if (!right && wrong++ == 0) {
      ADD_FAILURE() << session.directory() << "/thread_" << n << ": event " << position - 1
                    << " is not number " << number << " of the program";
    }
  });
  for (; gap != gaps.end(); ++gap) range.lost += gap->lost;
  EXPECT_EQ(wrong, 0u) << session.directory() << "/thread_" << n;
  EXPECT_EQ(range.lost, thread.value("lost_events", uint64_t{0}))
      << session.directory() << "/thread_" << n << ": the gaps do not add up";
  range.stored = position;
  range.end = range.stored + range.lost;
  return range;
}

}  // namespace

std::vector<ChaosThread> read_progress(const std::string& path, size_t threads) {
  std::vector<ChaosThread> progress(threads);
  std::ifstream file(path, std::ios::binary);
  for (ChaosThread& thread : progress) {
    char slot[kSlotBytes] = {};
    file.read(slot, sizeof slot);
    EXPECT_TRUE(file.good()) << path << " is short";
    std::memcpy(&thread.begun, slot, 8);
    std::memcpy(&thread.done, slot + 8, 8);
    std::memcpy(&thread.thread_id, slot + 16, 4);
  }
  return progress;
}

ChaosTally check_chaos_process(const std::string& root, int pid,
                               const std::vector<ChaosThread>& progress, ChaosEnd end,
                               bool lossless) {
  ChaosTally tally;
  // One that was cut off may have been so before it had said a word.
  if (end == ChaosEnd::kCutOff && session_directories(root, pid).empty()) return tally;
  const std::vector<RecordedSession> sessions = sealed_sessions(root, pid, kSealLimit);
  std::map<uint64_t, unsigned> leaves;
  for (const RecordedSession& session : sessions) leaves.merge(leaves_of(session));
  std::map<uint32_t, Range> newest;  // by thread id
  for (const RecordedSession& session : sessions) {
    ++tally.sessions;
    for (const json& thread : session.manifest()["threads"]) {
      const Range range = check_thread(session, thread, leaves);
      tally.events += range.stored;
      const uint32_t id = thread.value("thread_id", 0u);
      const auto before = newest.find(id);
      // What a session does not begin with, an earlier one holds.
      const uint64_t known = before != newest.end() ? before->second.end : 0;
      if (lossless && range.first) {
        EXPECT_LE(*range.first, known)
            << session.directory() << ": events are missing between two sessions of thread " << id;
        EXPECT_EQ(range.lost, *range.first)
            << session.directory() << ": thread " << id << " lost events, though it waited";
      }
      if (before == newest.end() || range.end > before->second.end) newest[id] = range;
    }
  }
  for (const ChaosThread& thread : progress) {
    if (thread.begun == 0) continue;
    const Range& range = newest[thread.thread_id];
    const std::string who =
        root + " process " + std::to_string(pid) + " thread " + std::to_string(thread.thread_id);
    EXPECT_LE(range.end, 2 * thread.begun) << who << " has events that never were";
    const uint64_t promised = end == ChaosEnd::kOrderly  ? 2 * thread.begun
                              : end == ChaosEnd::kKilled ? 2 * thread.done
                                                         : 0;
    EXPECT_GE(range.end, promised) << who << " lacks events";
    tally.lost += range.end > 0 ? range.lost : 0;
  }
  return tally;
}

}  // namespace collect::e2e
