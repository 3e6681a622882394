// Parts of a session, cut anywhere and in any order, against what one collector stores of it.
#include "storage/rebuild/merge_parts.h"

#include <algorithm>
#include <random>

#include "storage/model/session_layout.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;

// Of one lane: records from `first` up to `end`.
struct Piece {
  uint64_t first = 0;
  uint64_t end = 0;
};

class MergePartsTest : public SessionTest, public ::testing::WithParamInterface<atf::Version> {
 protected:
  MergePartsTest() : stream_(GetParam(), 1, 100) {
    stream_.add_many(10, Detail::kPreRoll);
    stream_.add_many(10);
    stream_.add_many(20, Detail::kLinked);
    stream_.add_many(5);
  }

  // A collector that gets these pieces of the two lanes, in this order, and seals.
  SessionPart store(const std::vector<Piece>& index, const std::vector<Piece>& detail,
                    bool has_end = true, uint32_t collector = 0) {
    SessionOptions mine = options();
    mine.collector.id.fill(static_cast<uint8_t>(collector + 1));
    clock.unix += 1'000'000'000;
    auto made = Session::create(fs, mine, test_identity(GetParam()));
    EXPECT_TRUE(made.ok());
    Session& session = **made;
    EXPECT_TRUE(session.open_stream(stream_.info()).ok());
    for (const Piece& piece : index) {
      if (piece.first < piece.end) {
        EXPECT_TRUE(append(session, stream_.index_page(piece.first, piece.end - piece.first)).ok());
      }
    }
    for (const Piece& piece : detail) {
      if (piece.first < piece.end) {
        EXPECT_TRUE(
            append(session, stream_.detail_page(piece.first, piece.end - piece.first)).ok());
      }
    }
    if (has_end) {
      EXPECT_TRUE(session.close_stream(stream_.end()).ok());
    }
    EXPECT_TRUE(
        session.seal(has_end ? SessionState::kComplete : SessionState::kRecovered, "").ok());
    return {&fs, session.directory(), manifest_of(session.directory())};
  }
  Result<MergeReport> merge(std::vector<SessionPart> parts) {
    SessionOptions into;
    into.root = merged_.path();
    return merge_parts(fs, into, std::move(parts), [](uint64_t, uint64_t) { return Status(); });
  }
  // The files of the merged session are those of one that has everything.
  void expect_whole(const Result<MergeReport>& merged) {
    ASSERT_TRUE(merged.ok()) << to_string(merged.error());
    EXPECT_TRUE(merged->session.missing.empty()) << merged->session.missing.front().what;
    EXPECT_EQ(merged->session.state, SessionState::kComplete);
    const SessionPart whole = store({{0, stream_.events()}}, {{0, stream_.details()}});
    for (const char* file : {"/thread_0/index.atf", "/thread_0/detail.atf"}) {
      EXPECT_EQ(read_file(merged->session.directory + file), read_file(whole.directory + file))
          << file;
    }
  }

  FakeStream stream_;
  TemporaryDirectory merged_;
};

TEST_P(MergePartsTest, PartsThatMeet) {
  expect_whole(merge({store({{0, 25}}, {{0, 15}}, false), store({{25, 45}}, {{15, 30}})}));
}

TEST_P(MergePartsTest, NamesOfAllParts) {
  SessionPart first = store({{0, 20}}, {{0, 15}}, false, 0);
  SessionPart second = store({{20, 45}}, {{15, 30}}, true, 1);
  first.manifest.threads[0].name = "second";
  first.manifest.threads[0].names = {{1000, "first"}, {2000, "second"}};
  second.manifest.threads[0].name = "third";
  second.manifest.threads[0].names = {{2000, "second"}, {3000, "third"}};
  const auto merged = merge({second, first});
  ASSERT_OK(merged);
  const Manifest manifest = manifest_of(merged->session.directory);
  EXPECT_EQ(manifest.threads[0].name, "third");
  EXPECT_EQ(manifest.threads[0].names,
            (std::vector<ThreadName>{{1000, "first"}, {2000, "second"}, {3000, "third"}}));
}

TEST_P(MergePartsTest, PartsThatOverlapInAnyOrder) {
  const SessionPart first = store({{0, 30}}, {{0, 18}}, false, 0);
  const SessionPart second = store({{22, 45}}, {{11, 30}}, true, 1);
  const auto merged = merge({second, first});
  expect_whole(merged);
  EXPECT_EQ(merged->repeated_events, 8u);
  const Manifest manifest = manifest_of(merged->session.directory);
  EXPECT_FALSE(manifest.identity.collector.is_known()) << "it is of none of them";
  EXPECT_TRUE(std::ranges::any_of(manifest.notes, [](const Note& note) {
    return note.what.find("collector 0202") != std::string::npos;
  }));
}

// A collector that the agent left and came back to.
TEST_P(MergePartsTest, PartWithAHole) {
  expect_whole(merge(
      {store({{0, 12}, {33, 45}}, {{0, 10}, {24, 30}}), store({{12, 33}}, {{10, 24}}, false)}));
}

// The lanes are acknowledged apart: a detail record may have its event in another part, before the
// records of this one or behind them.
TEST_P(MergePartsTest, DetailRecordsWithoutTheirEvents) {
  const SessionPart ahead = store({{0, 22}}, {{0, 20}}, false);  // details 12-19 of events 22-29
  const SessionPart behind = store({{35, 45}}, {{20, 30}});      // details 20-24 of events 30-34
  const SessionPart between = store({{22, 35}}, {}, false);
  EXPECT_TRUE(fs.exists(ahead.directory + "/thread_0/unlinked_12.atf"));
  EXPECT_TRUE(fs.exists(behind.directory + "/thread_0/unlinked_20.atf"));
  for (const SessionPart* part : {&ahead, &behind, &between}) expect_reference_ok(part->directory);
  expect_whole(merge({ahead, behind, between}));
}

TEST_P(MergePartsTest, PartsCutAtRandom) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    // The next part begins at or before the end of what there is.
    const auto cut = [&](uint64_t records, size_t parts) {
      std::vector<std::vector<Piece>> pieces(parts);
      uint64_t end = 0;
      while (end != records) {
        const uint64_t first = end - std::min<uint64_t>(end, random() % 4);
        end = std::min<uint64_t>(records, end + 1 + random() % 12);
        auto& mine = pieces[random() % parts];
        if (!mine.empty() && mine.back().end > first)
          mine.back().end = end;
        else
          mine.push_back({first, end});
      }
      return pieces;
    };
    const size_t count = 1 + random() % 4;
    const auto index = cut(stream_.events(), count);
    const auto detail = cut(stream_.details(), count);
    std::vector<SessionPart> parts;
    for (size_t i = 0; i < count; ++i) {
      parts.push_back(store(index[i], detail[i], i + 1 == count, static_cast<uint32_t>(i)));
    }
    std::shuffle(parts.begin(), parts.end(), random);
    parts.push_back(parts.front());  // given twice
    expect_whole(merge(parts));
  }
}

TEST_P(MergePartsTest, NamesEventsMissingFromAllParts) {
  const auto merged = merge({store({{0, 22}}, {{0, 12}}, false), store({{30, 45}}, {{20, 30}})});
  ASSERT_TRUE(merged.ok()) << to_string(merged.error());
  std::string sentences;
  for (const MissingInput& missing : merged->session.missing) {
    sentences += std::to_string(missing.count) + " " + missing.what + "\n";
  }
  EXPECT_NE(sentences.find("8 events 22 to 29 of thread 100: in none"), std::string::npos)
      << sentences;
  EXPECT_NE(sentences.find("8 detail records 12 to 19 of thread 100"), std::string::npos)
      << sentences;
  EXPECT_EQ(merged->session.state, SessionState::kRecovered);
  EXPECT_EQ(merged->session.totals.events, 37u);
  EXPECT_EQ(merged->session.totals.lost_events, 8u);
  expect_reader_ok(merged->session.directory);
}

TEST_P(MergePartsTest, PartsThatDisagreeAreRefused) {
  const SessionPart first = store({{0, 30}}, {}, false);
  const SessionPart second = store({{22, 45}}, {});
  const std::string path = second.directory + "/thread_0/index.atf";
  std::vector<uint8_t> bytes = read_file(path);
  bytes[64 + 3 * 32 + 8] ^= 1;  // the function of event 25
  write_file(path, bytes);
  const auto merged = merge({first, second});
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.code(), Code::kDamaged);
  EXPECT_NE(merged.error().message.find("event 25"), std::string::npos) << merged.error().message;
}

TEST_P(MergePartsTest, DamageIsSaid) {
  const SessionPart only = store({{0, 45}}, {{0, 30}});
  const std::string path = only.directory + "/thread_0/index.atf";
  std::vector<uint8_t> bytes = read_file(path);
  bytes[64 + 3 * 32 + 8] ^= 1;
  write_file(path, bytes);
  const auto merged = merge({only});
  ASSERT_TRUE(merged.ok());
  ASSERT_EQ(merged->session.missing.size(), 1u);
  EXPECT_NE(merged->session.missing[0].what.find("its checksum is wrong"), std::string::npos);
}

TEST_P(MergePartsTest, RefusesPartsThatDoNotBelongTogether) {
  EXPECT_EQ(merge({}).code(), Code::kInvalidArgument);
  const SessionPart first = store({{0, 30}}, {}, false);
  SessionPart other = store({{22, 45}}, {});
  other.manifest.identity.recording = 2;
  EXPECT_EQ(merge({first, other}).code(), Code::kInvalidArgument);
  other.manifest.identity = first.manifest.identity;
  other.manifest.state = SessionState::kRecording;
  EXPECT_EQ(merge({first, other}).code(), Code::kUnsupported);
  EXPECT_EQ(merge(std::vector<SessionPart>(kMaxParts + 1, first)).code(), Code::kInvalidArgument);
  SessionPart joined = first;
  Gap gap;
  gap.numbered_lost = gap.lost = 9;
  gap.merged = 2;
  joined.manifest.gaps.push_back(gap);
  EXPECT_EQ(merge({joined}).code(), Code::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(Versions, MergePartsTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2),
                         [](const auto& version) {
                           return version.param == atf::Version::kV1 ? "One" : "Two";
                         });

}  // namespace
}  // namespace collect::storage::test
