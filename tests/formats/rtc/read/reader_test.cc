// What the reader does with files that are cut, holed, forged, joined, or written by others.
#include "formats/rtc/read/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/rtc/check.h"
#include "formats/rtc/marker.h"
#include "tests/formats/rtc/frame_bytes.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::bytes_of;
using testing::FrameBytes;
using testing::Made;
using testing::Plan;

constexpr std::string_view kMeta =
    R"([{"id":9,"name":"clk","clock":true,"format":"uint32"},)"
    R"({"id":10,"name":"text","clock":"clk","format":"utf-8"},{"id":11,"name":"more"},12])";

struct Seen {
  std::vector<std::string> texts;
  std::vector<std::optional<int64_t>> times;
  std::vector<bool> possibly_incomplete;
  Findings findings;
};

Seen read_texts(Bytes file, const ReaderOptions& options = {}) {
  Seen seen;
  auto reader = Reader::open(file, options);
  EXPECT_TRUE(reader.ok());
  if (!reader) return seen;
  for (Object object; reader->next(object);) {
    if (object.stream->is_clock) continue;
    const Bytes payload = object.payload();
    seen.texts.emplace_back(payload.begin(), payload.end());
    seen.times.push_back(object.time_ns);
    seen.possibly_incomplete.push_back(object.possibly_incomplete);
  }
  seen.findings = reader->findings();
  return seen;
}

size_t count_of(const Findings& findings, Rule rule) {
  return static_cast<size_t>(std::ranges::count_if(
      findings.list(), [&](const Finding& finding) { return finding.rule == rule; }));
}

// The published reader shows nothing of such a file.
TEST(RtcReader, FileOfOneUnitIsWhole) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "one").text(10, "two").crc();
  const Seen seen = read_texts(made.bytes);
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(seen.findings.list().empty());
}

TEST(RtcReader, BothDialectsAndByteOrders) {
  for (const SpecialFrames special : {SpecialFrames::kFixed, SpecialFrames::kPrefixed}) {
    for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
      FrameBytes made;
      made.special = special;
      made.endian = endian;
      made.head(0, kMeta);
      uint8_t tick[4];
      store_le(tick, endian == Endian::kLittle ? 7u : __builtin_bswap32(7u));
      made.frame(9, tick).text(10, "at seven").close_unit();
      made.head(1, kMeta).text(10, "again").crc();
      const auto summary = check_file(made.bytes);
      ASSERT_TRUE(summary.ok());
      EXPECT_TRUE(summary->findings.list().empty());
      EXPECT_EQ(summary->special, special);
      EXPECT_EQ(summary->endian, endian);
      EXPECT_EQ(summary->units_with(CrcState::kIeee), 2u);
      EXPECT_EQ(summary->first_time_ns, 7000000000);
    }
  }
}

TEST(RtcReader, DistinguishesBothChecksums) {
  Plan plan;
  plan.options.geometry = {8192, 2048};
  for (const Checksum checksum : {Checksum::kIeee, Checksum::kPublished}) {
    plan.options.checksum = checksum;
    Made made = testing::make_random(plan);
    const CrcState good = checksum == Checksum::kIeee ? CrcState::kIeee : CrcState::kPublished;
    EXPECT_EQ(check_file(made.file)->units_with(good), made.units);
    made.file[8192 - 100] ^= 1;
    const auto summary = check_file(made.file);
    ASSERT_TRUE(summary.ok());
    EXPECT_GE(
        summary->units_with(CrcState::kMismatch) + count_of(summary->findings, Rule::kCrcMissing),
        1u);
    EXPECT_GE(summary->units_with(good), made.units - 1);
    ReaderOptions options;
    options.verify_crc = false;
    EXPECT_EQ(check_file(made.file, options)->units_with(CrcState::kMismatch), 0u);
  }
}

// Sheet section 8, decision 12: from any first byte on, with the streams of the Unit we are in.
TEST(RtcReader, StartsAnywhere) {
  Plan plan;
  plan.seed = 5;
  plan.options.geometry = {8192, 2048};
  plan.operations = 600;
  const Made made = testing::make_random(plan);
  const size_t all = made.objects.size();
  for (uint64_t cut = 1; cut < made.file.size() - 2000; cut += 731) {
    const Bytes rest = Bytes(made.file).subspan(cut);
    auto reader = Reader::open(rest);
    if (!reader) {
      EXPECT_GT(cut, (made.units - 1) * 8192);
      continue;
    }
    EXPECT_EQ(reader->head_bytes(), (8192 - cut % 8192) % 8192);
    std::vector<testing::ExpectedObject> found;
    std::map<std::string, size_t> of_stream;
    for (Object object; reader->next(object);) {
      if (object.stream->is_clock) continue;
      const Bytes payload = object.payload();
      found.push_back({object.stream->name, {payload.begin(), payload.end()}, object.time_ns});
      // Streams that were opened after the cut cannot have lost anything; all others may have.
      if (of_stream[object.stream->name]++ > 0) {
        EXPECT_FALSE(object.possibly_incomplete);
      }
    }
    ASSERT_LE(found.size(), all);
    // From the back, all objects are the same but for the first of each stream.
    for (size_t i = 1; i <= found.size(); ++i) {
      const auto& got = found[found.size() - i];
      const auto& want = made.objects[all - i];
      ASSERT_EQ(got.stream, want.stream);
      if (--of_stream[got.stream] == 0) continue;
      ASSERT_EQ(got.data, want.data);
    }
  }
}

TEST(RtcReader, HoleCostsOnlyWhatWasInIt) {
  FrameBytes made;
  for (uint64_t unit = 0; unit < 4; ++unit) {
    made.head(unit, kMeta).text(10, "unit " + std::to_string(unit)).close_unit();
  }
  std::vector<uint8_t> file = made.bytes;
  file.erase(file.begin() + 8192, file.begin() + 16384);
  const Seen seen = read_texts(file);
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"unit 0", "unit 2", "unit 3"}));
  EXPECT_EQ(seen.possibly_incomplete, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(count_of(seen.findings, Rule::kUnitsMissing), 1u);
  // Zeros in place of a whole Unit, as a disk leaves them: they parse as nothing at all.
  file = made.bytes;
  std::fill(file.begin() + 8192, file.begin() + 16384, uint8_t{0});
  EXPECT_EQ(read_texts(file).texts, seen.texts);
}

// Decision 9: not to the next Marker, but to the next index.
TEST(RtcReader, ContinuesAtTheNextIndexOfTheGrid) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "before").text(77, "whose is this?").text(10, "lost");
  made.pad_to(kMarkerBytes + 2048).minor_index().text(10, "behind").close_unit();
  const Seen seen = read_texts(made.bytes);
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"before", "behind"}));
  EXPECT_EQ(seen.possibly_incomplete, (std::vector<bool>{false, true}));
  EXPECT_EQ(count_of(seen.findings, Rule::kUnknownStream), 1u);
  EXPECT_EQ(count_of(seen.findings, Rule::kResync), 1u);
  EXPECT_EQ(count_of(seen.findings, Rule::kCrc), 0u);
}

TEST(RtcReader, StaleClocksAreSaidToBeUncertain) {
  FrameBytes made;
  const uint8_t one[4] = {1, 0, 0, 0};
  made.head(0, kMeta).frame(9, one).text(10, "sure").text(77, "?");
  made.pad_to(kMarkerBytes + 2048).minor_index().text(10, "stale").frame(9, one).text(10, "fresh");
  made.close_unit();
  auto reader = Reader::open(made.bytes);
  std::vector<bool> uncertain;
  for (Object object; reader->next(object);) {
    if (!object.stream->is_clock) uncertain.push_back(object.time_uncertain);
    EXPECT_EQ(object.time_ns, 1000000000);
  }
  EXPECT_EQ(uncertain, (std::vector<bool>{false, true, false}));
}

TEST(RtcReader, SummaryCountsWhatMayLackItsBeginning) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "zero").close_unit();
  made.head(1, kMeta).text(10, "one").text(10, "two").close_unit();
  for (const bool cut : {false, true}) {
    const auto summary = check_file(Bytes(made.bytes).subspan(cut ? 100 : 0));
    ASSERT_TRUE(summary.ok());
    ASSERT_EQ(summary->streams.size(), 1u);
    EXPECT_EQ(summary->streams[0].objects, cut ? 2u : 3u);
    EXPECT_EQ(summary->streams[0].possibly_incomplete, cut ? 1u : 0u);
    EXPECT_EQ(summary->streams[0].without_time, cut ? 2u : 3u);
  }
}

// Decision 2: a payload that ends like a Marker, continued by a frame whose bytes look like an
// Index. The real Markers stand on the grid.
TEST(RtcReader, ForgedMarkersAreRefused) {
  const std::string meta = R"([{"id":412,"name":"forger"},413])";
  FrameBytes made;
  made.geometry = {8192, 8192};
  made.head(0, meta);
  const uint64_t begin = made.at();
  std::vector<uint8_t> payload(1024, kMarkerFill);
  payload[0] = kMarkerFirstByte;
  made.frame(412, payload, true);
  // B9 06 is this stream's id with "more"; what follows reads as an Index that states a Unit.
  std::vector<uint8_t> index;
  append_index_count(index, 7);
  append_index_entry(index, {kIndexId, 4096});
  append_index_entry(index, {kMinorIndexId, 2048});
  made.frame(412, index, true).text(412, "end").close_unit();
  made.head(1, meta).text(412, "real").close_unit();
  made.head(2, meta).text(412, "end").crc();
  ASSERT_TRUE(read_unit_head(made.bytes, begin + 4));  // 412 and 1024 take two bytes each

  // In sequence it is a payload like any other.
  EXPECT_EQ(read_texts(made.bytes).texts.size(), 3u);
  // Where reading begins before it, the grid of what follows contradicts it.
  const Seen cut = read_texts(Bytes(made.bytes).subspan(100));
  EXPECT_EQ(cut.texts, (std::vector<std::string>{"real", "end"}));
  EXPECT_EQ(count_of(cut.findings, Rule::kMarkerForged), 1u);
  // After damage the next Marker is the one on the grid.
  std::vector<uint8_t> damaged = made.bytes;
  damaged[begin] = 0xFF;
  damaged[begin + 1] = 0x0F;
  const Seen resynced = read_texts(damaged);
  EXPECT_EQ(resynced.texts, (std::vector<std::string>{"real", "end"}));
  EXPECT_EQ(count_of(resynced.findings, Rule::kMarkerForged), 1u);
}

TEST(RtcReader, MarkerWithoutAnIndexIsNone) {
  std::vector<uint8_t> file(kMarkerBytes, kMarkerFill);
  file[0] = kMarkerFirstByte;
  file.push_back(0x12);
  file.resize(4000);
  EXPECT_FALSE(looks_like_rtc(file));
  EXPECT_EQ(Reader::open(file).code(), Code::kDamaged);
  EXPECT_EQ(Reader::open(Bytes(file).first(900)).code(), Code::kTruncated);
}

TEST(RtcReader, RecognisesAMarkerAndAnUnfinishedIndex) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "one").crc();
  EXPECT_TRUE(looks_like_rtc(made.bytes));
  EXPECT_TRUE(looks_like_rtc(Bytes(made.bytes).first(kMarkerBytes)));
  EXPECT_FALSE(looks_like_rtc(Bytes(made.bytes).first(kMarkerBytes - 1)));
  EXPECT_FALSE(looks_like_rtc(Bytes(made.bytes).subspan(1)));
  EXPECT_FALSE(looks_like_rtc({}));
}

// Decision 5: another recording in the same file, whose ids mean other streams.
TEST(RtcReader, SecondRecordingStartsFromNothing) {
  FrameBytes first;
  const uint8_t one[4] = {1, 0, 0, 0};
  first.head(0, kMeta).frame(9, one).text(10, "first").text(11, "open", true).crc();
  FrameBytes second;
  second.special = SpecialFrames::kPrefixed;
  second.geometry = {16384, 4096};
  second.head(0, R"([{"id":10,"name":"other","clock":"clk"},11])").text(10, "second").crc();
  std::vector<uint8_t> file = first.bytes;
  file.insert(file.end(), second.bytes.begin(), second.bytes.end());
  auto reader = Reader::open(file);
  Object object;
  std::vector<std::string> names;
  while (reader->next(object)) {
    names.push_back(object.stream->name);
    if (object.stream->name == "other") {
      EXPECT_FALSE(object.time_ns);
    }
    EXPECT_FALSE(object.possibly_incomplete);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"clk", "text", "other"}));
  EXPECT_EQ(reader->geometry().unit_bytes, 16384u);
  EXPECT_EQ(reader->stream(11), nullptr);
  EXPECT_EQ(count_of(reader->findings(), Rule::kSession), 1u);
  EXPECT_EQ(count_of(reader->findings(), Rule::kObjectDropped), 1u);
  EXPECT_EQ(count_of(reader->findings(), Rule::kMarkerGrid), 1u);
  EXPECT_EQ(check_file(file)->units_with(CrcState::kIeee), 2u);
}

// Decision 3: other streams' frames and indices stand between the frames of one object.
TEST(RtcReader, ObjectsInterleave) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "a", true).text(11, "1", true).text(10, "b", true);
  made.pad_to(kMarkerBytes + 2048).minor_index().text(11, "2").text(10, "c").crc();
  EXPECT_EQ(read_texts(made.bytes).texts, (std::vector<std::string>{"12", "abc"}));
}

TEST(RtcReader, MetaDeltasAreLearned) {
  FrameBytes made;
  made.head(0, kMeta).text(kMetaDeltaId, R"([{"id":12,"name":"late","type":"utf-8"},13])");
  made.text(12, "new").crc();
  auto reader = Reader::open(made.bytes);
  const uint64_t version = reader->streams_version();
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "late");
  EXPECT_EQ(object.stream->format.kind, FormatKind::kUtf8);
  EXPECT_NE(reader->streams_version(), version);
}

TEST(RtcReader, LimitsHoldAndAreSaid) {
  FrameBytes made;
  made.head(0, kMeta);
  for (int i = 0; i < 40; ++i) made.text(10, "0123456789", true);
  made.text(10, "end").text(10, "small").crc();
  ReaderOptions options;
  options.max_object_bytes = 300;
  Seen seen = read_texts(made.bytes, options);
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"small"}));
  EXPECT_EQ(count_of(seen.findings, Rule::kObjectLimit), 1u);
  options = {};
  options.max_open_fragments = 40;
  EXPECT_EQ(read_texts(made.bytes, options).texts, (std::vector<std::string>{"small"}));
  options.max_open_fragments = 41;
  EXPECT_EQ(read_texts(made.bytes, options).texts.size(), 2u);
  EXPECT_EQ(check_file(made.bytes, options)->streams[0].incomplete, 0u);
}

// The limit is for what is open at a time.
TEST(RtcReader, WholeObjectsHoldNoFragments) {
  FrameBytes made;
  made.head(0, kMeta);
  for (int i = 0; i < 9; ++i) made.text(10, "a", true).text(10, "b", true).text(10, "c");
  made.crc();
  ReaderOptions options;
  options.max_open_fragments = 3;
  const Seen seen = read_texts(made.bytes, options);
  EXPECT_EQ(seen.texts, std::vector<std::string>(9, "abc"));
  EXPECT_TRUE(seen.findings.list().empty());
}

TEST(RtcReader, GathersUpToALimit) {
  FrameBytes made;
  made.text(kMetaId, "12345", true).text(kMinorIndexId, "xx").text(kMetaId, "67");
  const uint64_t end = made.at();
  made.text(9, "behind");
  const auto gathered = gather_frames(made.bytes, 0, kMetaId, 7);
  ASSERT_TRUE(gathered);
  EXPECT_EQ(std::string(gathered->payload.begin(), gathered->payload.end()), "1234567");
  EXPECT_EQ(gathered->end, end);
  EXPECT_FALSE(gathered->truncated);
  EXPECT_FALSE(gather_frames(made.bytes, 0, kMetaId, 6));
  EXPECT_FALSE(gather_frames(made.bytes, 0, kIndexId, 7));
  for (uint64_t size = 0; size < end; ++size) {
    EXPECT_TRUE(gather_frames(Bytes(made.bytes).first(size), 0, kMetaId, 7)->truncated) << size;
  }
}

// A frame that swallows the next Marker is damage, and the Marker is not lost.
TEST(RtcReader, NoFrameReachesOverAMarker) {
  FrameBytes made;
  made.head(0, kMeta).text(10, "one").close_unit();
  made.head(1, kMeta).text(10, "two").crc();
  std::vector<uint8_t> file = made.bytes;
  file[8192 - 5] = kPaddingId << 1;  // the Crc frame becomes padding of 0x80 bytes and more
  file[8192 - 4] = 0xF0;
  file[8192 - 3] = 0x07;
  const Seen seen = read_texts(file);
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(count_of(seen.findings, Rule::kMarkerOverrun), 1u);
}

// Published writers stop a Unit's Crc early, or never write one.
TEST(RtcReader, UnfinishedFileIsReadToItsEnd) {
  Plan plan;
  plan.finish = false;
  plan.options.geometry = {8192, 4096};
  const Made made = testing::make_random(plan);
  for (uint64_t cut = made.file.size(); cut > made.file.size() - 300; --cut) {
    const auto summary = check_file(Bytes(made.file).first(cut));
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->findings.errors(), 0u);
    EXPECT_EQ(summary->units.back().crc, CrcState::kNone);
    EXPECT_LT(summary->tail_bytes, 1100u);
  }
}

// Behind a frame of `index`, the distance to the Unit's Index must be its first entry.
TEST(RtcReader, MinorIndexCountsFromItsIndex) {
  constexpr uint64_t kAt = 5121, kIndexAt = 1025;
  const auto file_of = [](const FrameBytes& frame) {
    std::vector<uint8_t> file(kAt, 0);
    file.insert(file.end(), frame.bytes.begin(), frame.bytes.end());
    return file;
  };
  std::vector<uint8_t> entries;
  append_index_entry(entries, {kIndexId, kAt - kIndexAt});
  append_index_entry(entries, {9, 77});
  const auto file = file_of(FrameBytes().frame(kMinorIndexId, entries));
  EXPECT_TRUE(is_minor_index(file, kAt, kIndexAt));
  EXPECT_FALSE(is_minor_index(file, kAt, kIndexAt + 1));
  EXPECT_FALSE(is_minor_index(file, kAt, kAt));
  EXPECT_FALSE(is_minor_index(file, file.size(), kIndexAt));
  for (uint64_t size = kAt; size < file.size(); ++size) {
    EXPECT_FALSE(is_minor_index(Bytes(file).first(size), kAt, kIndexAt)) << size;
  }
  EXPECT_FALSE(
      is_minor_index(file_of(FrameBytes().frame(kMinorIndexId + 1, entries)), kAt, kIndexAt));
  std::vector<uint8_t> other;
  append_index_entry(other, {9, kAt - kIndexAt});
  EXPECT_FALSE(is_minor_index(file_of(FrameBytes().frame(kMinorIndexId, other)), kAt, kIndexAt));
  EXPECT_FALSE(is_minor_index(file_of(FrameBytes().frame(kMinorIndexId, {})), kAt, kIndexAt));
  entries.resize(kMaxPayloadBytes);
  EXPECT_TRUE(is_minor_index(file_of(FrameBytes().frame(kMinorIndexId, entries)), kAt, kIndexAt));
  entries.resize(kMaxPayloadBytes + 1);
  EXPECT_FALSE(is_minor_index(file_of(FrameBytes().frame(kMinorIndexId, entries)), kAt, kIndexAt));
}

TEST(RtcReader, SearchesForMarkersInBothDirections) {
  std::vector<uint8_t> file(20000, 0x11);
  const auto put = [&](uint64_t at, uint8_t behind) {
    file[at] = kMarkerFirstByte;
    std::fill_n(file.begin() + static_cast<long>(at) + 1, 1024, kMarkerFill);
    file[at + 1025] = behind;
  };
  for (const uint64_t at : {0u, 1u, 1023u, 1024u, 1025u, 5000u, 18974u}) {
    std::fill(file.begin(), file.end(), uint8_t{0x11});
    put(at, kIndexFirstByte);
    EXPECT_EQ(find_marker(file, 0), at);
    EXPECT_EQ(find_marker(file, at), at);
    EXPECT_EQ(find_marker(file, at + 1), std::nullopt);
    EXPECT_EQ(find_marker_backwards(file, 19999, 0), at);
    EXPECT_EQ(find_marker_backwards(file, at, 0), at);
    EXPECT_EQ(find_marker_backwards(file, 19999, at + 1), std::nullopt);
    if (at > 0) {
      EXPECT_EQ(find_marker_backwards(file, at - 1, 0), std::nullopt);
    }
    put(at, 0x12);
    EXPECT_EQ(find_marker(file, 0), std::nullopt);
    put(at, kIndexFirstByte);
    file[at + 500] = 0;
    EXPECT_EQ(find_marker(file, 0), std::nullopt);
  }
  // One that ends with the bytes, and one byte less of it.
  std::fill(file.begin(), file.end(), uint8_t{0x11});
  put(5000, kIndexFirstByte);
  for (const uint64_t at : {uint64_t{0}, uint64_t{1}, uint64_t{5000}}) {
    const Bytes whole = Bytes(file).subspan(5000 - at, at + kMarkerBytes);
    EXPECT_TRUE(is_marker(whole, at));
    EXPECT_EQ(find_marker(whole, 0), at);
    EXPECT_EQ(find_marker_backwards(whole, at, 0), at);
    EXPECT_EQ(find_marker_backwards(whole, whole.size(), at), at);
    const Bytes less = whole.first(whole.size() - 1);
    EXPECT_FALSE(is_marker(less, at));
    EXPECT_EQ(find_marker(less, 0), std::nullopt);
    EXPECT_EQ(find_marker_backwards(less, less.size(), 0), std::nullopt);
  }
  for (const uint64_t at : {4998u, 4999u, 5001u, 5002u}) EXPECT_FALSE(is_marker(file, at)) << at;
  for (const uint64_t odd : {5001u, 5500u, 6023u, 6024u}) {
    std::vector<uint8_t> holed = file;
    holed[odd] = kMarkerFill + 1;
    EXPECT_FALSE(is_marker(holed, 5000)) << odd;
    EXPECT_EQ(find_marker(holed, 0), std::nullopt) << odd;
    EXPECT_EQ(find_marker_backwards(holed, 19999, 0), std::nullopt) << odd;
  }
  std::fill(file.begin(), file.end(), kMarkerFill);
  EXPECT_EQ(find_marker(file, 0), std::nullopt);
  EXPECT_EQ(find_marker_backwards(file, 19999, 0), std::nullopt);
  put(3000, kIndexFirstByte);
  put(9000, kIndexFirstByte);
  EXPECT_EQ(find_marker(file, 0), 3000u);
  EXPECT_EQ(find_marker_backwards(file, 19999, 0), 9000u);
}

}  // namespace
}  // namespace collect::rtc
