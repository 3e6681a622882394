// One recording for the tests in which something fails at every point there is, and what must hold
// of it afterwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/model/switch_times.h"
#include "storage/session/session.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {

// Two threads, details, pre-roll, an overwritten page, dropped events, times off the processor, a
// stream that ends; commits in between. Remembers what was promised.
class Scenario {
 public:
  Scenario() : one_(atf::Version::kV2, 1, 100), two_(atf::Version::kV2, 2, 200) {
    one_.add_many(6, FakeStream::Detail::kPreRoll);
    one_.add_many(12, FakeStream::Detail::kLinked);
    one_.add_many(4);
    two_.add_many(9, FakeStream::Detail::kLinked);
  }

  // Continues until the first error.
  Status run(Fs& fs, const SessionOptions& options,
             const SessionIdentity& identity = test_identity()) {
    auto made = Session::create(fs, options, identity);
    if (!made.ok()) return made.error();
    session = std::move(*made);
    directory = session->directory();
    ModuleInfo module;
    module.path = "/bin/program";
    COLLECT_TRY(session->add_modules({&module, 1}));
    COLLECT_TRY(session->open_stream(one_.info()));
    COLLECT_TRY(store(one_.index_page(0, 8)));
    COLLECT_TRY(commit());
    COLLECT_TRY(store(one_.detail_page(0, 6, true)));
    COLLECT_TRY(session->open_stream(two_.info()));
    const Page both[] = {two_.index_page(0, 5), two_.index_page(5, 4), two_.detail_page(0, 9)};
    COLLECT_TRY(session->append_pages(both));
    COLLECT_TRY(session->add_stalls(std::span(switches_).first(6)));
    COLLECT_TRY(commit());
    Page after_gap = one_.index_page(11, 5);  // 8, 9 and 10 were overwritten
    after_gap.lost_reasons = kLostOverwritten;
    after_gap.lost_total = 2;
    COLLECT_TRY(store(after_gap));
    COLLECT_TRY(store(one_.detail_page(6, 12)));
    COLLECT_TRY(session->add_stalls(std::span(switches_).subspan(6)));
    COLLECT_TRY(commit());
    COLLECT_TRY(store(one_.index_page(16, 6)));
    COLLECT_TRY(session->close_stream(two_.end()));
    COLLECT_TRY(commit());
    COLLECT_TRY(session->close_stream(one_.end(2)));
    COLLECT_TRY(session->seal(SessionState::kComplete, "done"));
    sealed = true;
    return {};
  }

  // Everything again, as an agent does that holds all it ever recorded, then the end.
  Status finish(Session& writer) {
    ModuleInfo module;
    module.path = "/bin/program";
    COLLECT_TRY(writer.add_modules({&module, 1}));
    COLLECT_TRY(writer.open_stream(one_.info()));
    COLLECT_TRY(writer.open_stream(two_.info()));
    Page first = one_.index_page(0, 8);
    Page second = one_.index_page(11, 11);
    second.lost_reasons = kLostOverwritten;
    second.lost_total = 2;
    const Page pages[] = {first, second, one_.detail_page(0, 18), two_.index_page(0, 9),
                          two_.detail_page(0, 9)};
    COLLECT_TRY(writer.append_pages(pages));
    COLLECT_TRY(writer.add_stalls(switches_));
    COLLECT_TRY(writer.close_stream(one_.end(2)));
    COLLECT_TRY(writer.close_stream(two_.end()));
    return writer.seal(SessionState::kComplete, "done");
  }

  std::vector<uint64_t> switch_ends() const {
    std::vector<uint64_t> ends;
    for (const StreamStall& one : switches_) ends.push_back(one.stall.last_ns);
    return ends;
  }
  FakeStream::Sections expected_one() const { return one_.expected({8, 9, 10}, {}); }
  FakeStream::Sections expected_two() const { return two_.expected({}, {}); }

  std::unique_ptr<Session> session;
  std::string directory;
  std::vector<StreamPosition> promised;  // by the last commit that succeeded
  SessionTotals promised_totals;
  bool sealed = false;
  const FakeStream& stream(uint32_t id) const { return id == 1 ? one_ : two_; }

 private:
  Status store(const Page& page) { return session->append_pages({&page, 1}); }
  Status commit() {
    COLLECT_TRY(session->commit());
    promised = session->positions();
    promised_totals = session->totals();
    return {};
  }

  static Stall sample(uint64_t ns) {
    Stall one = make_stall(StallKind::kSample, ns, ns);
    one.place = uint64_t{1} << 32 | 0x30;
    return one;
  }
  static Stall lock_wait(uint64_t first_ns, uint64_t last_ns) {
    Stall wait = make_stall(StallKind::kLock, first_ns, last_ns);
    wait.place = 0x5000;
    wait.owner = 100;
    return wait;
  }

  FakeStream one_;
  FakeStream two_;
  const std::vector<StreamStall> switches_ = {{1, make_stall(StallKind::kBlocked, 1010, 1020)},
                                              {2, make_stall(StallKind::kBlocked, 1011, 1013)},
                                              {1, make_stall(StallKind::kPreempted, 1030, 1040)},
                                              {2, lock_wait(1010, 1015)},
                                              {2, sample(1014)},
                                              {1, make_stall(StallKind::kBlocked, 1050, 1060)},
                                              {2, make_stall(StallKind::kBlocked, 1100, 1200)},
                                              {1, make_stall(StallKind::kBlocked, 1100, 1300)}};
};

// What must hold of the scenario's session after any fault.
class ScenarioTest : public SessionTest {
 protected:
  SessionOptions options_for(Durability durability) {
    SessionOptions options = SessionTest::options();
    options.durability = durability;
    return options;
  }
  uint64_t changes_of_a_whole_run(Durability durability) {
    TemporaryDirectory elsewhere;
    SessionOptions options = options_for(durability);
    options.root = elsewhere.path();
    FaultFs counting;
    Scenario scenario;
    EXPECT_OK(scenario.run(counting, options));
    return counting.changes();
  }
  void clear_root() {
    for (const auto& entry : std::filesystem::directory_iterator(root.path())) {
      std::filesystem::remove_all(entry.path());
    }
  }

  static void expect_positions(const Session& session,
                               const std::vector<StreamPosition>& promised) {
    const std::vector<StreamPosition> positions = session.positions();
    for (const StreamPosition& promise : promised) {
      const auto held =
          std::find_if(positions.begin(), positions.end(),
                       [&](const StreamPosition& p) { return p.stream_id == promise.stream_id; });
      ASSERT_NE(held, positions.end());
      EXPECT_GE(held->index_next, promise.index_next);
      EXPECT_GE(held->detail_next, promise.detail_next);
    }
  }

  // Every byte of a session in which nothing was lost but what the agent itself lost.
  static void expect_exact(const Scenario& scenario) {
    const std::string& directory = scenario.directory;
    const auto one = scenario.expected_one();
    const auto two = scenario.expected_two();
    EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), one.index);
    EXPECT_EQ(section_of(directory + "/thread_0/detail.atf"), one.detail);
    EXPECT_EQ(section_of(directory + "/thread_1/index.atf"), two.index);
    EXPECT_EQ(section_of(directory + "/thread_1/detail.atf"), two.detail);
    PosixFs fs;
    std::vector<Stall> switches;
    EXPECT_OK(read_switches(fs, directory, switches));
    std::vector<uint64_t> ends;
    for (const Stall& stored : switches) ends.push_back(stored.last_ns);
    EXPECT_EQ(ends, scenario.switch_ends());
  }

  // What must hold of any sealed session of the scenario.
  void expect_whole(const std::string& directory, const std::vector<StreamPosition>& promised,
                    bool power_was_lost = false) {
    const Manifest manifest = manifest_of(directory);
    EXPECT_NE(manifest.state, SessionState::kRecording);
    expect_reader_ok(directory, power_was_lost ? Payloads::kMayHaveZeros : Payloads::kWhole);
    uint64_t events = 0;
    for (const ManifestThread& thread : manifest.threads) {
      const std::string files = directory + "/thread_" + std::to_string(thread.id);
      EXPECT_EQ(section_of(files + "/index.atf").size(), thread.events * 32);
      EXPECT_EQ(std::filesystem::exists(files + "/detail.atf"), thread.has_detail);
      EXPECT_FALSE(std::filesystem::exists(files + "/stream.journal"));
      EXPECT_FALSE(std::filesystem::exists(files + "/detail.atf.new"));
      events += thread.events;
    }
    EXPECT_EQ(manifest.totals.events, events);
    EXPECT_FALSE(std::filesystem::exists(directory + "/reserve.space"));
    EXPECT_FALSE(std::filesystem::exists(directory + "/manifest.json.new"));
    for (const StreamPosition& position : promised) {
      const auto thread =
          std::find_if(manifest.threads.begin(), manifest.threads.end(),
                       [&](const ManifestThread& t) { return t.stream_id == position.stream_id; });
      ASSERT_NE(thread, manifest.threads.end());
      // Of stream 1, the three overwritten events are the only ones with numbers that were lost.
      const uint64_t overwritten = thread->stream_id == 1 && position.index_next > 8 ? 3 : 0;
      EXPECT_GE(thread->events + overwritten, position.index_next);
      EXPECT_GE(thread->detail_records + thread->lost_detail_records, position.detail_next);
    }
    // Only the power takes away what was stored, and only behind the last commit.
    for (const Gap& gap : manifest.gaps) {
      EXPECT_TRUE(power_was_lost || (gap.reasons & kLostDamaged) == 0);
    }
  }
};

}  // namespace collect::storage::test
