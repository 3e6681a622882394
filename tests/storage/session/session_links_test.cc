// Sealing when records were lost on either lane, or came as pre-roll: both directions of the links
// agree, and the files are exactly what an independent working-out of the losses says.
#include "storage/session/session.h"
#include "storage/thread/relink.h"

#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;
using Numbers = std::set<uint64_t>;

Numbers range(uint64_t first, uint64_t end) {
  Numbers numbers;
  for (uint64_t i = first; i < end; ++i) numbers.insert(i);
  return numbers;
}

Numbers operator+(Numbers a, const Numbers& b) {
  a.insert(b.begin(), b.end());
  return a;
}

struct LinkCase {
  const char* what;
  Numbers lost_events;
  Numbers lost_details;
  bool needs_no_change = false;
};

// Events 0-9 pre-roll details, 10-19 none, 20-39 linked details, 40-44 none: 45 events, 30 details.
FakeStream make_stream(atf::Version version) {
  FakeStream stream(version, 1, 100);
  stream.add_many(10, Detail::kPreRoll);
  stream.add_many(10);
  stream.add_many(20, Detail::kLinked);
  stream.add_many(5);
  return stream;
}

const LinkCase kCases[] = {
    {"pre-roll alone", {}, {}},
    {"an event lost before all details", range(0, 1), {}},
    {"an event without a detail lost", range(12, 15), {}},
    {"events with details lost", range(22, 25), {}},
    {"all events with details lost", range(0, 10) + range(20, 40), {}},
    {"the last events lost", range(38, 45), {}},
    {"every second event lost",
     {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43},
     {}},
    {"everything but one event lost", range(0, 30) + range(31, 45), {}},
    {"all events lost", range(0, 45), {}},
    {"the first details lost", {}, range(0, 3)},
    {"details in the middle lost", {}, range(8, 14)},
    {"the last details lost", {}, range(25, 30)},
    {"all details lost", {}, range(0, 30)},
    {"both, apart", range(2, 4) + range(30, 33), range(12, 15)},
    {"both, the same records", range(20, 23), range(10, 13)},
    {"both, every other way", {0, 5, 6, 13, 20, 21, 30, 44}, {1, 2, 6, 11, 12, 20, 29}},
};

class SessionLinksTest : public SessionTest, public ::testing::WithParamInterface<atf::Version> {
 protected:
  // Pages of the records that are not lost, at most `most` in each.
  static std::vector<Page> pages(FakeStream& stream, Lane lane, const Numbers& lost,
                                 uint64_t most) {
    const uint64_t end = lane == Lane::kIndex ? stream.events() : stream.details();
    std::vector<Page> out;
    for (uint64_t first = 0; first < end;) {
      if (lost.contains(first)) {
        ++first;
        continue;
      }
      uint64_t count = 1;
      while (count < most && first + count < end && !lost.contains(first + count)) ++count;
      out.push_back(lane == Lane::kIndex ? stream.index_page(first, count)
                                         : stream.detail_page(first, count));
      out.back().lost_reasons = kLostOverwritten;
      first += count;
    }
    return out;
  }

  void expect_links(const std::string& directory, const FakeStream& stream, const LinkCase& test) {
    expect_reader_ok(directory);
    const auto expected = stream.expected(test.lost_events, test.lost_details);
    EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), expected.index);
    EXPECT_EQ(section_of(directory + "/thread_0/detail.atf"), expected.detail);
    EXPECT_EQ(std::filesystem::exists(directory + "/thread_0/detail.atf"), expected.details != 0);
    const Manifest manifest = manifest_of(directory);
    EXPECT_EQ(manifest.totals.events, expected.events);
    EXPECT_EQ(manifest.totals.lost_events, test.lost_events.size());
    EXPECT_EQ(manifest.totals.detail_records, expected.details);
    EXPECT_EQ(manifest.totals.lost_detail_records, test.lost_details.size() + expected.unlinked);
    uint64_t in_gaps[2] = {};
    uint64_t unlinked = 0;
    for (const Gap& gap : manifest.gaps) {
      in_gaps[size_t(gap.lane)] += gap.lost;
      if (gap.reasons & kLostUnlinked) unlinked += gap.lost;
      EXPECT_LE(gap.before_seq, gap.lane == Lane::kIndex ? expected.events : expected.details);
    }
    EXPECT_EQ(in_gaps[0], manifest.totals.lost_events);
    EXPECT_EQ(in_gaps[1], manifest.totals.lost_detail_records);
    EXPECT_GE(unlinked, expected.unlinked);  // a merged gap has both reasons
  }
};

INSTANTIATE_TEST_SUITE_P(Versions, SessionLinksTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2));

TEST_P(SessionLinksTest, AgreeAfterEveryKindOfLoss) {
  enum Order { kIndexFirst, kDetailFirst, kInterleaved };
  for (const LinkCase& test : kCases) {
    for (const Order order : {kIndexFirst, kDetailFirst, kInterleaved}) {
      SCOPED_TRACE(std::string(test.what) + ", order " + std::to_string(order));
      FakeStream stream = make_stream(GetParam());
      auto session = make(GetParam());
      ASSERT_OK(session->open_stream(stream.info()));
      std::vector<Page> index = pages(stream, Lane::kIndex, test.lost_events, 7);
      std::vector<Page> detail = pages(stream, Lane::kDetail, test.lost_details, 4);
      std::vector<Page> all;
      for (size_t i = 0; i < std::max(index.size(), detail.size()); ++i) {
        if (i < index.size()) all.push_back(index[i]);
        if (i < detail.size()) all.push_back(detail[i]);
      }
      if (order != kInterleaved) {
        all = order == kIndexFirst ? index : detail;
        const std::vector<Page>& rest = order == kIndexFirst ? detail : index;
        all.insert(all.end(), rest.begin(), rest.end());
      }
      ASSERT_OK(session->append_pages(all));
      ASSERT_OK(session->close_stream(stream.end()));
      ASSERT_OK(session->seal(SessionState::kComplete, ""));
      expect_links(session->directory(), stream, test);
      if (order == kInterleaved) expect_reference_ok(session->directory());
    }
  }
}

TEST_P(SessionLinksTest, SurviveAnInterruptedSealAtEveryPoint) {
  for (const LinkCase& test : {kCases[0], kCases[3], kCases[4], kCases[15]}) {
    for (uint64_t k = 0;; ++k) {
      SCOPED_TRACE(std::string(test.what) + ", change " + std::to_string(k));
      FakeStream stream = make_stream(GetParam());
      FaultFs broken;
      auto made = Session::create(broken, options(), test_identity(GetParam()));
      ASSERT_OK(made);
      auto session = std::move(*made);
      const std::string directory = session->directory();
      ASSERT_OK(session->open_stream(stream.info()));
      ASSERT_OK(session->append_pages(pages(stream, Lane::kIndex, test.lost_events, 7)));
      ASSERT_OK(session->append_pages(pages(stream, Lane::kDetail, test.lost_details, 4)));
      ASSERT_OK(session->close_stream(stream.end()));
      ASSERT_OK(session->commit());
      broken.set_plan({broken.changes() + k, Code::kIo, true, true});
      const Status sealed = session->seal(SessionState::kComplete, "done");
      session.reset();
      auto recovered = recover_session(fs, options(), directory);
      ASSERT_OK(recovered);
      // Everything had arrived, so once the sealing was begun it ends as it was meant to.
      if (recovered->state != SessionState::kComplete) {
        EXPECT_EQ(recovered->state, SessionState::kRecovered);
        EXPECT_LT(k, 4u);
      }
      expect_links(directory, stream, test);
      if (sealed.ok()) break;
      ASSERT_LT(k, 100u);
    }
  }
}

// No room for a second detail file: what can stay as it is stays, the rest is counted.
TEST_P(SessionLinksTest, KeepsFirstRecordsWithoutSpaceForANewFile) {
  const LinkCase test{"", range(10, 12), {}};
  FakeStream stream(GetParam(), 1, 100);
  for (int i = 0; i < 45; ++i) stream.add(i < 20 ? Detail::kPreRoll : Detail::kNone, 150);
  FaultFs full;
  auto made = Session::create(full, options(), test_identity(GetParam()));
  ASSERT_OK(made);
  auto session = std::move(*made);
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(session->append_pages(pages(stream, Lane::kIndex, test.lost_events, 50)));
  ASSERT_OK(session->append_pages(pages(stream, Lane::kDetail, {}, 50)));
  ASSERT_OK(session->close_stream(stream.end()));
  FaultPlan plan;
  // Without the reserve there is room for another manifest, but not for another detail file.
  plan.capacity =
      full.used() - std::filesystem::file_size(session->directory() + "/reserve.space") + 4000;
  full.set_plan(plan);
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  // The details of events 0-9 stay; 10 and 11 went, those of 12-19 would have to be rewritten.
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_EQ(manifest.totals.detail_records, 10u);
  EXPECT_EQ(manifest.totals.lost_detail_records, 10u);
  EXPECT_EQ(section_of(session->directory() + "/thread_0/detail.atf"),
            stream.expected({}, range(10, 20)).detail);
  expect_reference_ok(session->directory());
}

// Gaps stand where their records would: those known before move with what was dropped.
TEST_P(SessionLinksTest, GapsMoveWithTheRecords) {
  FakeStream stream = make_stream(GetParam());
  auto session = make(GetParam());
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(session->append_pages(pages(stream, Lane::kIndex, range(0, 2), 7)));
  ASSERT_OK(session->append_pages(pages(stream, Lane::kDetail, range(8, 14), 4)));
  ASSERT_OK(session->close_stream(stream.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  std::vector<Gap> gaps = manifest_of(session->directory()).gaps;
  std::erase_if(gaps, [](const Gap& gap) { return gap.lane == Lane::kIndex; });
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].before_seq, 0u);
  EXPECT_EQ(gaps[0].lost, 2u);
  EXPECT_EQ(gaps[0].numbered_lost, 2u);
  EXPECT_EQ(gaps[0].reasons, uint32_t(kLostUnlinked));
  EXPECT_GT(gaps[0].first_ns, 0u);
  EXPECT_GT(gaps[0].last_ns, gaps[0].first_ns);
  EXPECT_EQ(gaps[1].before_seq, 6u) << "8 of the agent's, without the two";
  EXPECT_EQ(gaps[1].lost, 6u);
}

TEST_P(SessionLinksTest, WholeStreamsAreNotTouched) {
  FakeStream stream(GetParam(), 1, 100);
  for (int i = 0; i < 60; ++i) stream.add(i % 4 == 1 ? Detail::kLinked : Detail::kNone);
  FaultFs counting;
  auto made = Session::create(counting, options(), test_identity(GetParam()));
  ASSERT_OK(made);
  ASSERT_OK((*made)->open_stream(stream.info()));
  const Page all[] = {stream.index_page(0, 60), stream.detail_page(0, stream.details())};
  ASSERT_OK((*made)->append_pages(all));
  ASSERT_OK((*made)->close_stream(stream.end()));
  const uint64_t before = counting.changes();
  ASSERT_OK((*made)->seal(SessionState::kComplete, ""));
  // Reserve, two manifests of three or five changes each, footer and header of two files, journal.
  EXPECT_LE(counting.changes() - before, 1u + 3 + 5 + 4 + 1);
  EXPECT_EQ(section_of((*made)->directory() + "/thread_0/index.atf"), stream.index_bytes());
}

// As many records as links, numbered one behind the other, to and from the same events.
TEST(LinksAgree, OnlyWhenCountNextAndHashDo) {
  LaneSummary index, detail;
  index.links = index.next_link = detail.records = 7;
  index.link_hash = detail.link_hash = 99;
  EXPECT_TRUE(links_agree(index, detail));
  for (uint64_t LaneSummary::* member :
       {&LaneSummary::links, &LaneSummary::next_link, &LaneSummary::link_hash}) {
    LaneSummary other = index;
    other.*member += 1;
    EXPECT_FALSE(links_agree(other, detail));
  }
  detail.records = 8;
  EXPECT_FALSE(links_agree(index, detail));
}

}  // namespace
}  // namespace collect::storage::test
