// What Session promises of pages: stored in order, once, whole, and every gap counted.
#include "storage/session/session.h"

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;

class StoredPagesTest : public SessionTest {};
class StoredPagesVersionTest : public SessionTest,
                               public ::testing::WithParamInterface<atf::Version> {};

INSTANTIATE_TEST_SUITE_P(Versions, StoredPagesVersionTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2));

TEST_P(StoredPagesVersionTest, StoresBytesAsTheyCameAndSeals) {
  FakeStream one(GetParam(), 3, 100);
  FakeStream two(GetParam(), 9, 101);
  for (int i = 0; i < 50; ++i) {
    one.add(i % 5 == 0 ? Detail::kLinked : Detail::kNone);
    two.add();
  }
  auto session = make(GetParam());
  ASSERT_OK(session->open_stream(one.info()));
  ASSERT_OK(session->open_stream(two.info()));
  const Page pages[] = {one.index_page(0, 20), one.index_page(20, 30), two.index_page(0, 50),
                        one.detail_page(0, 4), one.detail_page(4, 6)};
  ASSERT_OK(session->append_pages(pages));
  ASSERT_OK(session->close_stream(one.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, "test"));

  const std::string directory = session->directory();
  const auto expected = one.expected({}, {});
  EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), expected.index);
  EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), one.index_bytes());
  EXPECT_EQ(section_of(directory + "/thread_0/detail.atf"), expected.detail);
  EXPECT_EQ(section_of(directory + "/thread_1/index.atf"), two.index_bytes());
  EXPECT_FALSE(std::filesystem::exists(directory + "/thread_1/detail.atf"));
  expect_reference_ok(directory);
  const Manifest manifest = manifest_of(directory);
  EXPECT_EQ(manifest.state, SessionState::kComplete);
  EXPECT_EQ(manifest.totals.events, 100u);
  EXPECT_EQ(manifest.totals.detail_records, 10u);
  EXPECT_EQ(manifest.totals.lost_events, 0u);
  ASSERT_EQ(manifest.threads.size(), 2u);
  EXPECT_TRUE(manifest.threads[0].has_detail);
  EXPECT_TRUE(manifest.threads[0].ended);
  EXPECT_FALSE(manifest.threads[1].has_detail);
  EXPECT_EQ(manifest.threads[1].thread_id, 101u);
  // Nothing of the recording's own bookkeeping is left.
  std::vector<std::string> names = *fs.list_directory(directory);
  EXPECT_EQ(names, (std::vector<std::string>{"manifest.json", "thread_0", "thread_1"}));
  EXPECT_EQ(*fs.list_directory(directory + "/thread_0"),
            (std::vector<std::string>{"detail.atf", "index.atf"}));
}

TEST_F(StoredPagesTest, NotesAndFiltersBeyondTheirLimitsAreCounted) {
  auto session = make();
  for (size_t i = 0; i < kMaxNotes + 3; ++i) ASSERT_OK(session->note("note"));
  for (uint64_t i = 0; i < kMaxFunctionFilters + 2; ++i) {
    ASSERT_OK(session->function_filter({1'000 + i, {"f"}, {}, 1}));
  }
  ASSERT_OK(session->seal(SessionState::kComplete, "test"));
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_EQ(manifest.notes.size(), kMaxNotes);
  EXPECT_GE(manifest.notes_left_out, 3u) << "the session adds notes of its own";
  EXPECT_EQ(manifest.function_filters.size(), size_t{kMaxFunctionFilters});
  EXPECT_EQ(manifest.function_filters_left_out, 2u);
}

TEST_F(StoredPagesTest, ManifestNamesThreadAndModulesBeforeTheFirstPage) {
  auto session = make();
  const Manifest first = manifest_of(session->directory());
  EXPECT_EQ(first.state, SessionState::kRecording);
  EXPECT_EQ(first.identity.process_id, test_identity().process_id);
  EXPECT_EQ(first.identity.pid, 4711u);

  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add();
  ModuleInfo module;
  module.module_id = 0;
  module.path = "/bin/program";
  module.build_id = {0xab, 0xcd};
  module.base_address = 0x1000;
  ASSERT_OK(session->add_modules({&module, 1}));
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 1)));
  const Manifest then = manifest_of(session->directory());
  ASSERT_EQ(then.threads.size(), 1u);
  EXPECT_EQ(then.threads[0].thread_id, 100u);
  EXPECT_EQ(then.threads[0].stream_id, 1u);
  ASSERT_EQ(then.modules.size(), 1u);
  EXPECT_EQ(then.modules[0].path, "/bin/program");
  EXPECT_EQ(then.modules[0].build_id, module.build_id);
  EXPECT_EQ(then.modules[0].base_address, 0x1000u);
}

TEST_F(StoredPagesTest, UnsealedSessionReadsAsUnfinalized) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10, Detail::kLinked);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 10)));
  ASSERT_OK(append(*session, stream.detail_page(0, 10)));
  ASSERT_OK(session->commit());
  for (const std::string& words : independent_checks(session->directory())) {
    EXPECT_NE(words.find(": recovered, 10 events"), std::string::npos) << words;
    EXPECT_EQ(words.find("warning"), std::string::npos) << words;
  }
}

struct Delivery {
  const char* what;
  std::vector<std::pair<uint64_t, uint64_t>> pages;  // first, count
  std::set<uint64_t> lost;
  size_t gaps;
};

TEST_P(StoredPagesVersionTest, TakesRepeatsOverlapsAndGaps) {
  const Delivery deliveries[] = {
      {"in order", {{0, 4}, {4, 4}, {8, 2}}, {}, 0},
      {"the same page twice", {{0, 4}, {0, 4}, {4, 6}}, {}, 0},
      {"everything again", {{0, 10}, {0, 4}, {4, 4}, {8, 2}}, {}, 0},
      {"overlap", {{0, 4}, {2, 6}, {7, 3}}, {}, 0},
      {"inner repeat", {{0, 8}, {2, 3}, {6, 4}}, {}, 0},
      {"gap at the start", {{3, 7}}, {0, 1, 2}, 1},
      {"gap in the middle", {{0, 4}, {6, 4}}, {4, 5}, 1},
      {"gap, then what is older", {{0, 4}, {6, 4}, {4, 2}}, {4, 5}, 1},
      {"gap, then an overlap with it", {{0, 4}, {6, 2}, {2, 8}}, {4, 5}, 1},
      {"two gaps", {{1, 3}, {5, 5}}, {0, 4}, 2},
      {"gap at the end", {{0, 4}}, {4, 5, 6, 7, 8, 9}, 1},
      {"nothing at all", {}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
  };
  for (const bool at_once : {false, true}) {
    for (const Delivery& delivery : deliveries) {
      SCOPED_TRACE(delivery.what);
      FakeStream stream(GetParam(), 1, 100);
      stream.add_many(10);
      auto session = make(GetParam());
      ASSERT_OK(session->open_stream(stream.info()));
      std::vector<Page> pages;
      for (const auto& [first, count] : delivery.pages) {
        pages.push_back(stream.index_page(first, count));
        if (!at_once) ASSERT_OK(append(*session, pages.back()));
      }
      if (at_once) ASSERT_OK(session->append_pages(pages));
      ASSERT_OK(session->close_stream(stream.end()));
      ASSERT_EQ(session->positions().size(), 1u);
      EXPECT_EQ(session->positions()[0].index_next, 10u);
      ASSERT_OK(session->seal(SessionState::kComplete, ""));
      EXPECT_EQ(section_of(session->directory() + "/thread_0/index.atf"),
                stream.expected(delivery.lost, {}).index);
      const Manifest manifest = manifest_of(session->directory());
      EXPECT_EQ(manifest.gaps.size(), delivery.gaps);
      uint64_t lost = 0;
      for (const Gap& gap : manifest.gaps) {
        lost += gap.numbered_lost;
        EXPECT_EQ(gap.reasons, uint32_t(kLostUnavailable));
      }
      EXPECT_EQ(lost, delivery.lost.size());
      EXPECT_EQ(manifest.totals.events + manifest.totals.lost_events, 10u);
      expect_reference_ok(session->directory());
    }
  }
}

TEST_F(StoredPagesTest, CountsRepeatedReportsOfDropsOnce) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  Page first = stream.index_page(0, 4);
  Page second = stream.index_page(4, 6);
  second.lost_total = 5;
  second.lost_reasons = kLostRingFull;
  second.lost_first_ns = 11;
  second.lost_last_ns = 22;
  Page loss_alone;
  loss_alone.stream_id = 1;
  loss_alone.first_seq = 10;
  loss_alone.lost_total = 7;
  loss_alone.lost_reasons = kLostReentry;
  for (int repeat = 0; repeat < 3; ++repeat) {
    ASSERT_OK(append(*session, first));
    ASSERT_OK(append(*session, second));
    ASSERT_OK(append(*session, loss_alone));
  }
  EXPECT_EQ(session->positions()[0].index_next, 10u);
  EXPECT_EQ(session->totals().events, 10u);
  EXPECT_EQ(session->totals().lost_events, 7u);
  ASSERT_OK(session->close_stream(stream.end(9)));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const Manifest manifest = manifest_of(session->directory());
  ASSERT_EQ(manifest.gaps.size(), 2u);
  EXPECT_EQ(manifest.gaps[0].before_seq, 4u);
  EXPECT_EQ(manifest.gaps[0].lost, 5u);
  EXPECT_EQ(manifest.gaps[0].numbered_lost, 0u);
  EXPECT_EQ(manifest.gaps[0].first_ns, 11u);
  EXPECT_EQ(manifest.gaps[0].last_ns, 22u);
  EXPECT_EQ(manifest.gaps[0].reasons, uint32_t(kLostRingFull));
  EXPECT_EQ(manifest.gaps[1].before_seq, 10u);
  EXPECT_EQ(manifest.gaps[1].lost, 4u);  // 2 reported by a page alone, 2 by the stream's end
  EXPECT_EQ(manifest.gaps[1].reasons, uint32_t(kLostReentry | kLostUnavailable));
  EXPECT_EQ(manifest.totals.lost_events, 9u);
}

TEST_F(StoredPagesTest, ManyGapsAreMergedAndCountedExactly) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  constexpr uint64_t kPages = 3000;
  stream.add_many(kPages * 3, Detail::kLinked);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  std::set<uint64_t> lost;
  for (uint64_t i = 0; i < kPages; ++i) {
    Page page = stream.index_page(i * 3 + 1, 2);  // every third record was overwritten
    page.lost_reasons = kLostOverwritten;
    lost.insert(i * 3);
    ASSERT_OK(append(*session, page));
  }
  ASSERT_OK(append(*session, stream.detail_page(0, stream.details())));
  ASSERT_OK(session->close_stream(stream.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_LE(manifest.gaps.size(), size_t(kMaxGapsPerThread));
  EXPECT_EQ(manifest.totals.events, kPages * 2);
  EXPECT_EQ(manifest.totals.lost_events, kPages);
  EXPECT_EQ(manifest.totals.detail_records, kPages * 2);
  EXPECT_EQ(manifest.totals.lost_detail_records, kPages);
  uint64_t in_gaps = 0;
  uint64_t merged = 0;
  for (const Gap& gap : manifest.gaps) {
    if (gap.lane == Lane::kIndex) in_gaps += gap.lost;
    if (gap.lane == Lane::kIndex) merged += gap.merged;
  }
  EXPECT_EQ(in_gaps, kPages);
  EXPECT_EQ(merged, kPages);
  // The links are exact all the same: the journal had every gap.
  const auto expected = stream.expected(lost, {});
  EXPECT_EQ(section_of(session->directory() + "/thread_0/index.atf"), expected.index);
  EXPECT_EQ(section_of(session->directory() + "/thread_0/detail.atf"), expected.detail);
}

TEST_P(StoredPagesVersionTest, RefusesABadPageAndKeepsTheOthers) {
  const atf::Version version = GetParam();
  const size_t kind_at = version == atf::Version::kV1 ? 20 : 24;
  const std::pair<const char*, size_t> damages[] = {
      {"kind", 5 * 32 + kind_at},
      {"reserved or kind", 5 * 32 + kind_at + 3},
      {"time", 5 * 32 + 7},
      {"link", 5 * 32 + (version == atf::Version::kV1 ? 28u : 16u)},
  };
  for (const auto& [what, at] : damages) {
    SCOPED_TRACE(what);
    FakeStream stream(version, 1, 100);
    stream.add_many(10, Detail::kLinked);
    FakeStream damaged = stream;
    if (std::string_view(what) == "time") {
      std::fill_n(damaged.index_bytes().begin() + 5 * 32, 8, uint8_t(0));
    } else if (std::string_view(what) == "link") {
      damaged.index_bytes()[at] = 2;  // runs backwards
    } else {
      damaged.index_bytes()[at] = 0x77;
    }
    auto session = make(version);
    ASSERT_OK(session->open_stream(stream.info()));
    const Page pages[] = {stream.index_page(0, 4), damaged.index_page(4, 4)};
    const Status status = session->append_pages(pages);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kDamaged);
    EXPECT_NE(status.error().message.find("record 5"), std::string::npos) << status.error().message;
    EXPECT_EQ(session->positions()[0].index_next, 4u);
    // The peer may come again with good bytes.
    ASSERT_OK(append(*session, stream.index_page(4, 6)));
    EXPECT_EQ(session->totals().events, 10u);
  }
}

TEST_F(StoredPagesTest, RefusesCountsAndNumbersThatCannotBe) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10, Detail::kLinked);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  const auto refused = [&](Page page, auto change) {
    change(page);
    const Status status = append(*session, page);
    return !status.ok() && status.code() == Code::kDamaged;
  };
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.record_count = 5; }));
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.record_count = UINT32_MAX; }));
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.record_count = 0; }));
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.first_seq = UINT64_MAX; }));
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.lost_total = UINT64_MAX; }));
  EXPECT_TRUE(refused(stream.index_page(0, 4), [](Page& p) { p.stream_id = 2; }));
  EXPECT_TRUE(refused(stream.detail_page(0, 4), [](Page& p) { p.record_count = 3; }));
  EXPECT_TRUE(refused(stream.detail_page(0, 4), [](Page& p) { p.record_count = 5; }));
  EXPECT_TRUE(refused(stream.detail_page(0, 4),
                      [](Page& p) { p.bytes = p.bytes.first(p.bytes.size() - 1); }));
  EXPECT_EQ(session->totals().events, 0u);
  EXPECT_EQ(session->totals().detail_records, 0u);
  StreamEnd end = stream.end();
  end.index_count = UINT64_MAX;
  EXPECT_FALSE(session->close_stream(end).ok());
  end.stream_id = 77;
  EXPECT_FALSE(session->close_stream(end).ok());
  ASSERT_OK(append(*session, stream.index_page(0, 10)));
  ASSERT_OK(append(*session, stream.detail_page(0, 10)));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  expect_reference_ok(session->directory());
}

TEST_F(StoredPagesTest, TwoSessionsInOneSecondHaveTheirOwnNames) {
  auto first = make();
  auto second = make();
  auto third = make();
  EXPECT_NE(first->name(), second->name());
  EXPECT_EQ(second->name().substr(0, 24), first->name().substr(0, 23) + "_");
  EXPECT_NE(second->name(), third->name());
  auto places = list_sessions_of(root.path());
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0], first->name());
  EXPECT_EQ(places[1], second->name());
  EXPECT_EQ(places[2], third->name());
}

TEST_F(StoredPagesTest, KeepsFewFilesOpenHoweverManyThreadsThereAre) {
  const auto open_files = [] {
    return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  };
  const size_t before = open_files();
  auto session = make();
  std::vector<FakeStream> streams;
  for (uint32_t i = 0; i < 700; ++i) {
    streams.emplace_back(atf::Version::kV2, i, 1000 + i);
    streams.back().add_many(4, Detail::kLinked);
    ASSERT_OK(session->open_stream(streams.back().info()));
  }
  for (uint64_t round = 0; round < 4; ++round) {
    for (FakeStream& stream : streams) {
      ASSERT_OK(append(*session, stream.index_page(round, 1)));
      ASSERT_OK(append(*session, stream.detail_page(round, 1)));
    }
    EXPECT_LE(open_files(), before + 2 * 256 + 4);
  }
  EXPECT_EQ(session->totals().events, 2800u);
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(open_files(), before);
  expect_reference_ok(session->directory());
}

TEST_F(StoredPagesTest, TotalsSpanTheEventsOfAllThreads) {
  FakeStream early(atf::Version::kV2, 1, 100), late(atf::Version::kV2, 2, 200);
  early.add_many(10);
  late.add_many(30);
  auto session = make();
  ASSERT_OK(session->open_stream(late.info()));
  ASSERT_OK(session->open_stream(early.info()));
  ASSERT_OK(append(*session, late.index_page(20, 10)));
  const uint64_t late_ns = session->totals().first_ns;
  ASSERT_OK(append(*session, early.index_page(0, 10)));
  EXPECT_EQ(session->totals().first_ns, load_le<uint64_t>(early.index_bytes().data()));
  EXPECT_EQ(late_ns, load_le<uint64_t>(late.index_bytes().data() + 20 * atf::kEventBytes));
  EXPECT_EQ(session->totals().last_ns, late.time_ns());
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_EQ(manifest.time_start_ns, load_le<uint64_t>(early.index_bytes().data()));
  EXPECT_EQ(manifest.time_end_ns, late.time_ns());
}

TEST_F(StoredPagesTest, PageHasFourMebibytesAtMost) {
  constexpr uint64_t kMost = kMaxPageBytes / atf::kEventBytes;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(kMost + 1);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  const Status refused = append(*session, stream.index_page(0, kMost + 1));
  EXPECT_EQ(refused.code(), Code::kDamaged);
  EXPECT_NE(refused.error().message.find("more than a page has"), std::string::npos);
  ASSERT_OK(append(*session, stream.index_page(0, kMost)));
  EXPECT_EQ(session->totals().events, kMost);
}

}  // namespace
}  // namespace collect::storage::test
