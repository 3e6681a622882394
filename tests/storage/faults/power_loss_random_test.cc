// Longer recordings, made up by a seed, whose daemon loses power again and again: after the last
// life, every record is there once, and every loss is the agent's own.
#include <random>

#include "tests/storage/kept_records.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

// What an agent recorded of one thread and what it lost, decided beforehand, so that it says the
// same again after a reconnect.
class PlannedStream {
 public:
  PlannedStream(uint32_t id, std::minstd_rand& random, bool with_detail)
      : stream(atf::Version::kV2, id, 100 + id) {
    const uint64_t events = 60 + random() % 240;
    for (uint64_t i = 0; i < events; ++i) {
      const bool detail = with_detail && random() % 3 == 0;
      stream.add(detail ? FakeStream::Detail::kLinked : FakeStream::Detail::kNone,
                 uint16_t(random() % 256));
    }
    plan(random, stream.events(), pages_[0], lost_events);
    plan(random, stream.details(), pages_[1], lost_details);
  }

  // The next page behind `position`; false at the end.
  bool next_page(Lane lane, const StreamPosition& position, Page& page) {
    const uint64_t next = lane == Lane::kIndex ? position.index_next : position.detail_next;
    for (const Planned& planned : pages_[static_cast<size_t>(lane)]) {
      if (planned.first + planned.count <= next) continue;
      const uint64_t first = std::max(planned.first, next);
      const uint64_t count = planned.first + planned.count - first;
      page =
          lane == Lane::kIndex ? stream.index_page(first, count) : stream.detail_page(first, count);
      page.lost_total = planned.dropped;
      page.lost_reasons = planned.reasons;
      return true;
    }
    return false;
  }
  StreamEnd end() const { return stream.end(dropped_[0], dropped_[1]); }

  FakeStream stream;
  std::set<uint64_t> lost_events;
  std::set<uint64_t> lost_details;

 private:
  struct Planned {
    uint64_t first;
    uint64_t count;
    uint64_t dropped;  // lost without a number, up to here
    uint32_t reasons;
  };

  void plan(std::minstd_rand& random, uint64_t records, std::vector<Planned>& pages,
            std::set<uint64_t>& lost) {
    uint64_t dropped = 0;
    uint32_t reasons = 0;
    for (uint64_t at = 0; at < records;) {
      if (random() % 5 == 0) {
        for (uint64_t n = 1 + random() % 4; n > 0 && at + 1 < records; --n) lost.insert(at++);
        reasons |= kLostOverwritten;
      }
      if (random() % 7 == 0) {
        dropped += 1 + random() % 3;
        reasons |= kLostReentry;
      }
      const uint64_t count = std::min<uint64_t>(1 + random() % 24, records - at);
      pages.push_back({at, count, dropped, reasons});
      at += count;
    }
    dropped_[&pages - pages_] = dropped;
  }

  std::vector<Planned> pages_[2];
  uint64_t dropped_[2] = {};
};

class PowerLossRandomTest : public ScenarioTest {
 protected:
  SessionOptions durable(uint64_t seed) {
    SessionOptions with = options_for(Durability::kFsync);
    with.capture.enabled = seed % 2 == 0;
    with.capture.roll_bytes = 30'000;
    return with;
  }

  // One life of the daemon: continues until it dies, or everything was sent and sealed.
  Status live(Session& session, std::vector<PlannedStream>& plans, std::minstd_rand& random) {
    std::vector<StreamPosition> at(plans.size());
    for (const StreamPosition& position : session.positions()) {
      at[position.stream_id - 1] = position;
    }
    std::vector<bool> open(plans.size());
    std::vector<bool> done(plans.size());
    size_t left = plans.size();
    while (left > 0) {
      const size_t which = random() % plans.size();
      if (done[which]) continue;
      PlannedStream& plan = plans[which];
      if (!open[which]) {
        ModuleInfo module;
        module.module_id = uint32_t(which);
        module.path = "/lib/" + std::to_string(which);
        COLLECT_TRY(session.add_modules({&module, 1}));
        COLLECT_TRY(session.open_stream(plan.stream.info()));
        open[which] = true;
      }
      // An index page or a detail page: the lanes arrive independently of each other.
      const Lane lane = random() % 3 == 0 ? Lane::kDetail : Lane::kIndex;
      Page page;
      if (plan.next_page(lane, at[which], page)) {
        COLLECT_TRY(session.append_pages({&page, 1}));
        (lane == Lane::kIndex ? at[which].index_next : at[which].detail_next) =
            page.first_seq + page.record_count;
      } else if (!plan.next_page(Lane::kIndex, at[which], page) &&
                 !plan.next_page(Lane::kDetail, at[which], page)) {
        COLLECT_TRY(session.close_stream(plan.end()));
        done[which] = true;
        --left;
      }
      clock.monotonic += random() % 300'000'000;
      if (random() % 4 != 0) continue;
      COLLECT_TRY(session.commit());
      promised = session.positions();
    }
    return session.seal(SessionState::kComplete, "");
  }

  std::vector<StreamPosition> promised;
};

TEST_F(PowerLossRandomTest, ManyLivesLoseNothing) {
  constexpr Kept kAll[] = {Kept::kSynced, Kept::kNames, Kept::kBytes, Kept::kEverything,
                           Kept::kSome};
  uint64_t cuts = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    clear_root();
    promised.clear();
    std::minstd_rand random(uint32_t(seed + 1));
    const Kept kept = kAll[seed % 5];
    // Holes in detail records that were not acknowledged are the model's right: that lane is
    // compared where only promises are (below).
    std::vector<PlannedStream> plans;
    const size_t threads = 1 + random() % 5;
    for (uint32_t id = 1; id <= threads; ++id) {
      plans.emplace_back(id, random, kept != Kept::kSome);
    }
    std::string directory;
    for (int life = 0;; ++life) {
      ASSERT_LT(life, 200);
      // The later lives are longer, so that there is an end.
      FaultFs process({20 + random() % (150 + 30 * uint64_t(life)), Code::kIo, true, true});
      PowerLossFs disk(process, root.path());
      auto session = promised.empty() ? Session::create(disk, durable(seed), test_identity())
                                      : Session::resume(disk, durable(seed), directory);
      bool finished = false;
      if (session.ok()) {
        directory = (*session)->directory();
        expect_positions(**session, promised);
        const Status lived = live(**session, plans, random);
        finished = lived.ok();
        ASSERT_TRUE(finished || process.failed()) << to_string(lived.error());
        session->reset();
      } else if (session.code() == Code::kCancelled) {
        finished = recover_session(disk, durable(seed), directory).ok();
      }
      ++cuts;
      disk.lose_power(kept, random());
      if (finished && !process.failed()) break;
      if (promised.empty()) clear_root();
    }
    const Manifest manifest = manifest_of(directory);
    EXPECT_EQ(manifest.state, SessionState::kComplete);
    expect_reader_ok(directory);
    for (const ManifestThread& thread : manifest.threads) {
      const PlannedStream& plan = plans[thread.stream_id - 1];
      const auto expected = plan.stream.expected(plan.lost_events, plan.lost_details);
      const std::string files = directory + "/thread_" + std::to_string(thread.id);
      EXPECT_EQ(section_of(files + "/index.atf"), expected.index);
      EXPECT_EQ(section_of(files + "/detail.atf"), expected.detail);  // empty when there is none
      EXPECT_EQ(thread.lost_events, plan.lost_events.size() + plan.end().index_lost);
      EXPECT_EQ(thread.lost_detail_records,
                plan.lost_details.size() + plan.end().detail_lost + expected.unlinked);
    }
    EXPECT_EQ(manifest.threads.size(), plans.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(cuts, 400u);
}

TEST_F(PowerLossRandomTest, RecoveredWithSectorsOfAnyMoment) {
  uint64_t with_promises = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    clear_root();
    promised.clear();
    std::minstd_rand random(uint32_t(seed + 1000));
    std::vector<PlannedStream> plans;
    const size_t threads = 1 + random() % 5;
    for (uint32_t id = 1; id <= threads; ++id) plans.emplace_back(id, random, true);
    FaultFs process({30 + random() % 900, Code::kIo, true, true});
    PowerLossFs disk(process, root.path());
    auto session = Session::create(disk, durable(seed), test_identity());
    ASSERT_OK(session);
    const std::string directory = (*session)->directory();
    (void)live(**session, plans, random);
    session->reset();
    disk.lose_power(Kept::kSome, random());
    if (promised.empty()) continue;
    ++with_promises;
    ASSERT_OK(recover_session(fs, durable(seed), directory));
    expect_reader_ok(directory, Payloads::kMayHaveZeros);
    const Manifest manifest = manifest_of(directory);
    for (const StreamPosition& promise : promised) {
      const PlannedStream& plan = plans[promise.stream_id - 1];
      expect_kept(directory, manifest, plan.stream, promise, plan.lost_details);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(with_promises, 100u);
}

}  // namespace
}  // namespace collect::storage::test
