// Moving by Unit, by position and by time gives what reading from the front would give from there.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/rtc/meta/value.h"
#include "formats/rtc/read/reader.h"
#include "tests/formats/rtc/frame_bytes.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::Made;
using testing::Plan;

struct Item {
  uint64_t offset = 0;
  std::string stream;
  std::optional<int64_t> time_ns;
  std::vector<uint8_t> data;
  bool operator==(const Item&) const = default;
};

Item item_of(const Object& object) {
  const Bytes payload = object.payload();
  return {object.offset, object.stream->name, object.time_ns, {payload.begin(), payload.end()}};
}

std::vector<Item> read_all(Bytes file) {
  std::vector<Item> items;
  auto reader = Reader::open(file);
  for (Object object; reader->next(object);) items.push_back(item_of(object));
  return items;
}

// A daemon's file: one clock, pages, log lines now and then.
Made live_capture(uint64_t seed, Geometry geometry, size_t operations = 3000) {
  Plan plan;
  plan.seed = seed;
  plan.options.geometry = geometry;
  plan.operations = operations;
  plan.max_object_bytes = 20000;
  return testing::make_random(plan);
}

TEST(RtcSeek, ByUnit) {
  const Made made = live_capture(3, {16384, 4096});
  const auto all = read_all(made.file);
  auto reader = Reader::open(made.file);
  ASSERT_EQ(reader->unit_count(), made.units);
  for (uint64_t k = made.units; k-- > 0;) {
    const auto place = reader->seek_unit(k);
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(place.value(), k * 16384);
    EXPECT_EQ(reader->unit().count, k);
    EXPECT_FALSE(reader->streams().empty());
    // Objects that begin behind the place, each as it is in the whole file, but for times of clocks
    // that were not repeated.
    size_t compared = 0;
    for (Object object; compared < 50 && reader->next(object); ++compared) {
      const Item item = item_of(object);
      const auto same = std::ranges::find(all, item.offset, &Item::offset);
      if (object.possibly_incomplete && (same == all.end() || same->data != item.data)) continue;
      ASSERT_NE(same, all.end());
      EXPECT_EQ(item.data, same->data);
      if (item.time_ns) {
        EXPECT_EQ(item.time_ns, same->time_ns);
      }
    }
  }
  EXPECT_EQ(reader->seek_unit(made.units).code(), Code::kNotFound);
}

// A seek backwards shows earlier times, which is no clock that steps back.
TEST(RtcSeek, GoingBackIsNoClockThatDoes) {
  const Made made = live_capture(3, {16384, 4096});
  auto reader = Reader::open(made.file);
  for (int round = 0; round < 2; ++round) {
    for (Object object; reader->next(object);) {
    }
    EXPECT_EQ(std::ranges::count(reader->findings().list(), Rule::kClockBackwards, &Finding::rule),
              0)
        << round;
    ASSERT_TRUE(reader->seek_unit(0).ok());
  }
}

// What a clock showed elsewhere in the file is no time here, before it ticks.
TEST(RtcSeek, ClockShowsNothingBeforeItTicks) {
  constexpr std::string_view kMeta =
      R"([{"id":9,"name":"clk","clock":true,"format":"uint32"},)"
      R"({"id":10,"name":"text","clock":"clk","format":"utf-8"},11])";
  const uint8_t one[4] = {1, 0, 0, 0};
  testing::FrameBytes made;
  made.head(0, kMeta).frame(9, one).text(10, "first").close_unit();
  made.head(1, kMeta).text(10, "early").frame(9, one).text(10, "late").close_unit();
  auto reader = Reader::open(made.bytes);
  for (Object object; reader->next(object);) {
  }
  ASSERT_TRUE(reader->seek_unit(1).ok());
  std::vector<std::optional<int64_t>> times;
  for (Object object; reader->next(object);) {
    if (!object.stream->is_clock) times.push_back(object.time_ns);
  }
  EXPECT_EQ(times, (std::vector<std::optional<int64_t>>{std::nullopt, 1000000000}));
}

TEST(RtcSeek, ByPosition) {
  const Made made = live_capture(4, {16384, 4096});
  auto reader = Reader::open(made.file);
  for (uint64_t offset = 0; offset < made.file.size(); offset += 1777) {
    const auto place = reader->seek_offset(offset);
    ASSERT_TRUE(place.ok());
    ASSERT_LE(place.value(), offset);
    const uint64_t in_unit = offset % 16384;
    const uint64_t expected = in_unit < 1025 + 4096
                                  ? offset - in_unit
                                  : offset - in_unit + 1025 + (in_unit - 1025) / 4096 * 4096;
    EXPECT_EQ(place.value(), expected) << offset;
    Object object;
    while (reader->next(object) && object.offset < offset) {
    }
    EXPECT_EQ(reader->findings().errors(), 0u) << offset;
  }
  EXPECT_EQ(reader->seek_offset(made.file.size()).code(), Code::kNotFound);
}

// Every object's own time is found, and it is the first with that time or a later one.
TEST(RtcSeek, ByTime) {
  for (const uint64_t seed : {6u, 7u}) {
    const Made made = live_capture(seed, {16384, 4096});
    const auto all = read_all(made.file);
    auto reader = Reader::open(made.file);
    const auto on_clk = [](const Item& item) { return item.time_ns >= 1609772400000000000; };
    const auto searched = [&](int64_t time) {
      return std::ranges::find_if(
          all, [&](const Item& item) { return on_clk(item) && item.time_ns >= time; });
    };
    int64_t last = 0;
    for (size_t i = 0; i < all.size(); i += 29) {
      if (!on_clk(all[i])) continue;
      for (const int64_t time : {*all[i].time_ns, *all[i].time_ns + 1}) {
        const auto expected = searched(time);
        const auto place = reader->seek_time(time);
        last = std::max(last, time);
        if (expected == all.end()) {
          EXPECT_EQ(place.code(), Code::kNotFound);
          continue;
        }
        ASSERT_TRUE(place.ok());
        // A delta that has not ticked behind the place has no time yet; everything else has.
        ASSERT_LE(expected->offset, place.value());
        Object object;
        ASSERT_TRUE(reader->next(object));
        ASSERT_EQ(object.offset, place.value());
        ASSERT_GE(object.time_ns, time);
        const auto same = std::ranges::find(all, object.offset, &Item::offset);
        ASSERT_NE(same, all.end());
        EXPECT_EQ(same->time_ns, object.time_ns);
      }
    }
    EXPECT_EQ(reader->seek_time(last + 1000000000000).code(), Code::kNotFound);
    ASSERT_TRUE(reader->seek_time(0).ok());
    EXPECT_EQ(reader->seek_time(0, "absent").code(), Code::kNotFound);
  }
}

// Without delta clocks the place is exactly the first object of that time.
TEST(RtcSeek, ByTimeIsExactWithAPlainClock) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {8192, 2048};
  auto writer = Writer::create(sink, options);
  StreamInfo clock;
  clock.name = "clk";
  clock.is_clock = true;
  clock.format = Format::parse("timespec");
  const uint64_t clk = writer->open_stream(clock).value();
  StreamInfo data;
  data.name = "data";
  data.clock = "clk";
  const uint64_t data_id = writer->open_stream(data).value();
  std::mt19937_64 random(9);
  for (int64_t i = 0; i < 2000; ++i) {
    std::array<uint8_t, kTimespecBytes> value;
    encode_timespec_ns(static_cast<uint64_t>(1000000000 + i / 3 * 50), value);
    if (i % 3 == 0) {
      ASSERT_TRUE(writer->write(clk, value).ok());
    }
    const std::vector<uint8_t> page(random() % 900, 1);
    ASSERT_TRUE(writer->write(data_id, page).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const auto all = read_all(sink.bytes());
  auto reader = Reader::open(sink.bytes());
  for (int64_t time = 1000000000 - 60; time <= 1000000000 + 666 * 50 + 10; time += 25) {
    const auto expected =
        std::ranges::find_if(all, [&](const Item& item) { return item.time_ns >= time; });
    const uint64_t frames = reader->frames();
    const auto place = reader->seek_time(time);
    ASSERT_EQ(place.ok(), expected != all.end()) << time;
    if (!place) continue;
    // The walk behind the search stays within about one minor unit.
    EXPECT_LT(reader->frames() - frames, 40u) << time;
    ASSERT_EQ(place.value(), expected->offset) << time;
    Object object;
    for (auto item = expected; item != std::min(expected + 5, all.end()); ++item) {
      ASSERT_TRUE(reader->next(object));
      EXPECT_EQ(item_of(object), *item);
    }
  }
}

TEST(RtcSeek, ThroughDamageAndAcrossRecordings) {
  Made made = live_capture(11, {16384, 4096});
  const uint64_t whole = made.file.size();
  const Made second = live_capture(12, {8192, 2048}, 500);
  std::vector<uint8_t> file = made.file;
  std::fill(file.begin() + 3 * 16384 - 200, file.begin() + 3 * 16384 + 500, uint8_t{0xEE});
  file.insert(file.end(), second.file.begin(), second.file.end());
  auto reader = Reader::open(file);
  const auto behind = reader->seek_unit(3);  // its Marker is gone
  ASSERT_TRUE(behind.ok());
  EXPECT_EQ(behind.value(), 4u * 16384);
  const auto other = reader->seek_offset(whole + 9000);
  ASSERT_TRUE(other.ok());
  EXPECT_GE(other.value(), whole + 8192);
  EXPECT_EQ(reader->geometry().unit_bytes, 8192u);
  Object object;
  EXPECT_TRUE(reader->next(object));
  // Back into the first one.
  const auto back = reader->seek_offset(20000);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(reader->geometry().unit_bytes, 16384u);
  EXPECT_TRUE(reader->next(object));
}

// Streams that a meta frame describes are known wherever one lands behind it.
TEST(RtcSeek, LearnsTheMetaDeltasOfItsUnit) {
  testing::FrameBytes made;
  const std::string_view meta = R"([{"id":9,"name":"a"},10])";
  const std::string_view later = R"([{"id":9,"name":"a"},{"id":10,"name":"b"},11])";
  made.head(0, meta).text(kMetaDeltaId, R"([{"id":10,"name":"b"},11])").text(10, "one");
  made.pad_to(kMarkerBytes + 2048).minor_index().text(10, "two").close_unit();
  made.head(1, later).text(10, "three").close_unit();
  auto reader = Reader::open(made.bytes);
  ASSERT_TRUE(reader->seek_offset(kMarkerBytes + 2048 + 5).ok());
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "b");
  EXPECT_EQ(object.payload().size(), 3u);
  EXPECT_EQ(reader->findings().errors(), 0u);
}

// The next Unit's Meta says the same only when it continues this recording.
TEST(RtcSeek, FindsStreamsBeforeAnotherRecordingOfThem) {
  testing::FrameBytes made;
  const std::string_view meta = R"([{"id":9,"name":"a"},10])";
  made.head(0, meta).text(kMetaDeltaId, R"([{"id":10,"name":"b"},11])");
  made.pad_to(kMarkerBytes + 2048).minor_index().text(10, "two").close_unit();
  made.head(0, meta).text(9, "again").close_unit();
  auto reader = Reader::open(made.bytes);
  ASSERT_TRUE(reader->seek_offset(kMarkerBytes + 2048 + 5).ok());
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "b");
}

// By time too, whether the object that is found or the clock itself was opened within the Unit.
TEST(RtcSeek, SeeksByTimeInStreamsOpenedWithinAUnit) {
  testing::FrameBytes made;
  const auto tick = [&](uint8_t value) { made.frame(10, std::vector<uint8_t>{value}); };
  made.head(0, R"([{"id":9,"name":"a"},10])");
  made.text(kMetaDeltaId, R"([{"id":10,"name":"clk","clock":true,"format":"uint8"},)"
                          R"({"id":11,"name":"b","clock":"clk"},12])");
  tick(1);
  made.pad_to(kMarkerBytes + 2048).minor_index();
  tick(2);
  made.text(11, "two").pad_to(kMarkerBytes + 4096).minor_index();
  const uint64_t last = made.at();
  tick(3);
  made.text(11, "three").close_unit();
  auto reader = Reader::open(made.bytes);
  const uint64_t frames = reader->frames();
  const auto place = reader->seek_time(3000000000, "clk");
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place.value(), last);
  EXPECT_LT(reader->frames() - frames, 10u);
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "clk");
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "b");
  EXPECT_EQ(reader->findings().errors(), 0u);
}

// The clock that is searched by when none is named: the first with an epoch, of any format.
TEST(RtcSeek, ByTimeTakesTheFirstClockWithAnEpoch) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"data"},{"id":10,"clock":true,"format":"uint8","offset":9},)"
               R"({"id":11,"name":"cycles","clock":true,"format":"uint8"},)"
               R"({"id":12,"name":"seconds","clock":true,"format":"uint8","offset":100},)"
               R"({"id":13,"name":"clk","clock":true,"format":"timespec"},)"
               R"({"id":14,"name":"on cycles","clock":"cycles"},)"
               R"({"id":15,"name":"on seconds","clock":"seconds"},16])");
  made.frame(11, std::vector<uint8_t>{200}).text(14, "far ahead");
  made.frame(12, std::vector<uint8_t>{50});
  const uint64_t wanted = made.at();
  made.text(15, "at 150 s").crc();
  auto reader = Reader::open(made.bytes);
  const auto place = reader->seek_time(150'000'000'000);
  ASSERT_TRUE(place.ok());
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "seconds");
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.offset, wanted);

  // Without an epoch anywhere, the first; without a clock that has a name, none.
  testing::FrameBytes plain;
  plain.head(0, R"([{"id":9,"name":"data"},{"id":10,"name":"a","clock":true,"format":"uint8"},)"
                R"({"id":11,"name":"b","clock":true,"format":"uint8"},12])");
  plain.frame(11, std::vector<uint8_t>{7});
  const uint64_t tick = plain.at();
  plain.frame(10, std::vector<uint8_t>{5}).crc();
  EXPECT_EQ(Reader::open(plain.bytes)->seek_time(1'000'000'000).value(), tick);
  testing::FrameBytes none;
  none.head(0, R"([{"id":9,"name":"data"},{"id":10,"clock":true,"format":"uint8"},11])").crc();
  EXPECT_EQ(Reader::open(none.bytes)->seek_time(0).code(), Code::kNotFound);
}

// The search looks at Units that are gone: behind the place nothing reads like one.
TEST(RtcSeek, ByTimeInAFileWhoseEndIsDestroyed) {
  Made made = live_capture(13, {8192, 2048}, 2000);
  ASSERT_GT(made.units, 12u);
  const auto all = read_all(made.file);
  const uint64_t good = made.units / 4 * 8192;
  std::fill(made.file.begin() + static_cast<std::ptrdiff_t>(good), made.file.end(), uint8_t{0xEE});
  auto reader = Reader::open(made.file);
  const auto wanted = std::ranges::find_if(all, [&](const Item& item) {
    return item.offset > good / 2 && item.time_ns >= 1609772400000000000;
  });
  ASSERT_LT(wanted->offset, good);
  const auto place = reader->seek_time(*wanted->time_ns);
  ASSERT_TRUE(place.ok());
  EXPECT_LE(place.value(), wanted->offset);
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_GE(object.time_ns, *wanted->time_ns);
}

struct CountingObserver final : ReaderObserver {
  void unit_ended(const UnitInfo&) override { ++units; }
  void skipped(uint64_t, uint64_t) override { ++skips; }
  void object_dropped(const StreamInfo&, uint64_t) override { ++dropped; }
  int units = 0;
  int skips = 0;
  int dropped = 0;
};

// A search reads here and there; the observer hears of what next() passes only.
TEST(RtcSeek, SearchIsNotObserved) {
  testing::FrameBytes made;
  const std::string_view meta = R"([{"id":9,"name":"clk","clock":true,"format":"uint8"},10])";
  for (uint8_t unit = 0; unit < 8; ++unit) {
    testing::FrameBytes one;
    one.head(unit, meta).text(77, "damage").pad_to(kMarkerBytes + 2048).minor_index();
    for (const uint8_t step : {uint8_t{0}, uint8_t{5}}) {
      one.frame(9, std::vector<uint8_t>{static_cast<uint8_t>(10 * unit + step)});
    }
    made.raw(one.close_unit().bytes);
  }
  CountingObserver observer;
  ReaderOptions options;
  options.observer = &observer;
  auto reader = Reader::open(made.bytes, options);
  const auto place = reader->seek_time(54000000000);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place.value() / 8192, 5u);
  EXPECT_EQ(observer.units + observer.skips + observer.dropped, 0);
  for (Object object; reader->next(object);) {
  }
  EXPECT_EQ(observer.units, 3);
  EXPECT_EQ(observer.skips, 2);
}

// However often one leaves in the middle of an object, the limit is for what is open now.
TEST(RtcSeek, ForgetsTheObjectsThatWereOpen) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"a"},10])");
  made.text(9, "a", true).text(9, "b", true).text(9, "c").crc();
  ReaderOptions options;
  options.max_open_fragments = 3;
  auto reader = Reader::open(made.bytes, options);
  for (int round = 0; round < 5; ++round) {
    Frame frame;
    do {
      ASSERT_TRUE(reader->next_frame(frame));
    } while (frame.payload.empty() || frame.payload[0] != 'b');
    ASSERT_TRUE(reader->seek_unit(0).ok());
  }
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.size, 3u);
}

// What was opened behind the place cannot have lost anything before it.
TEST(RtcSeek, OnlyStreamsFromBeforeThePlaceMayBeIncomplete) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"a"},10])").pad_to(kMarkerBytes + 2048).minor_index();
  made.text(9, "old").text(kMetaDeltaId, R"([{"id":10,"name":"b"},11])").text(10, "new").crc();
  auto reader = Reader::open(made.bytes);
  ASSERT_TRUE(reader->seek_offset(kMarkerBytes + 2048 + 5).ok());
  Object object;
  ASSERT_TRUE(reader->next(object));
  EXPECT_TRUE(object.possibly_incomplete);
  ASSERT_TRUE(reader->next(object));
  EXPECT_EQ(object.stream->name, "b");
  EXPECT_FALSE(object.possibly_incomplete);
}

TEST(RtcSeek, CountsTheUnitsThatTheFileHasRoomFor) {
  testing::FrameBytes made;
  const std::string_view meta = R"([{"id":9,"name":"a"},10])";
  made.head(0, meta).close_unit().head(1, meta).close_unit();
  ASSERT_EQ(made.at(), 2u * 8192);
  EXPECT_EQ(Reader::open(made.bytes)->unit_count(), 2u);
  EXPECT_EQ(Reader::open(Bytes(made.bytes).subspan(1))->unit_count(), 1u);
  EXPECT_EQ(Reader::open(Bytes(made.bytes).first(8192))->unit_count(), 1u);
  EXPECT_EQ(Reader::open(Bytes(made.bytes).first(8192 + 1))->unit_count(), 2u);
}

// As many streams as a reader takes, each a clock that counts from the one before.
TEST(RtcSeek, LongestChainOfClocksHasTheFirstEpoch) {
  testing::FrameBytes made;
  made.geometry = {uint64_t{1} << 23, uint64_t{1} << 23};
  std::string meta = R"([{"id":9,"name":"0","clock":true,"offset":5},)";
  for (size_t i = 1; i < kMaxStreams; ++i) {
    meta += R"({"id":)" + std::to_string(kFirstStreamId + i) + R"(,"name":")" + std::to_string(i) +
            R"(","clock":true,"delta":")" + std::to_string(i - 1) + "\"},";
  }
  const uint64_t next_id = kFirstStreamId + kMaxStreams;
  meta += std::to_string(next_id) + "]";
  ASSERT_LE(meta.size(), kMaxMetaBytes);
  made.head(0, "[9]");
  for (size_t at = 0; at < meta.size(); at += kMaxPayloadBytes) {
    made.text(kMetaId, meta.substr(at, kMaxPayloadBytes), meta.size() - at > kMaxPayloadBytes);
  }
  made.text(kMetaDeltaId, R"([{"id":)" + std::to_string(next_id) + R"(,"name":"one too many"},)" +
                              std::to_string(next_id + 1) + "]");
  made.crc();
  auto reader = Reader::open(made.bytes);
  Object object;
  EXPECT_FALSE(reader->next(object));
  EXPECT_EQ(reader->streams().size(), kMaxStreams);
  EXPECT_TRUE(reader->clock_has_epoch(std::to_string(kMaxStreams - 1)));
  EXPECT_EQ(reader->stream(next_id), nullptr);
  ASSERT_EQ(reader->findings().list().size(), 1u);
  EXPECT_EQ(reader->findings().list()[0].rule, Rule::kMetaEntry);
}

}  // namespace
}  // namespace collect::rtc
