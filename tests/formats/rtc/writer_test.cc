// What the writer promises: the layout of the sheet, and right results in the cases where the
// published writer tears, corrupts or aborts.
#include "formats/rtc/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "formats/rtc/check.h"
#include "formats/rtc/meta/value.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::bytes_of;
using ::testing::ElementsAreArray;

StreamInfo named(const char* name, const char* format = "raw") {
  StreamInfo info;
  info.name = name;
  info.format = Format::parse(format);
  return info;
}

StreamInfo clock_named(const char* name, const char* format = "timespec") {
  StreamInfo info = named(name, format);
  info.is_clock = true;
  return info;
}

std::array<uint8_t, kTimespecBytes> timespec(uint64_t ns) {
  std::array<uint8_t, kTimespecBytes> out;
  encode_timespec_ns(ns, out);
  return out;
}

Summary checked(const VectorSink& sink) {
  auto summary = check_file(sink.bytes());
  EXPECT_TRUE(summary.ok());
  for (const Finding& finding : summary->findings.list()) {
    ADD_FAILURE() << rule_name(finding.rule) << " at " << finding.offset << ": "
                  << finding.sentence;
  }
  return std::move(summary).value();
}

// The bytes that the sheet shows for a default file with one clock, "clk", and a second stream that
// follows; only the time differs.
TEST(RtcWriter, FirstBytesAreThoseOfTheSheet) {
  VectorSink sink;
  auto writer = Writer::create(sink);
  ASSERT_TRUE(writer.ok());
  const uint64_t clk = writer->open_stream(clock_named("clk")).value();
  EXPECT_EQ(clk, 9u);
  ASSERT_TRUE(writer->write(clk, timespec(1795165157984972052)).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto& file = sink.bytes();
  EXPECT_EQ(file[0], 0x04);
  for (size_t i = 1; i <= 1024; ++i) ASSERT_EQ(file[i], 0xB9);
  const std::string meta = R"([{"id":9,"name":"clk","clock":true,"format":"timespec"},10])";
  std::vector<uint8_t> expected = {0x06, 0x12,
                                   0x00, 0x07,
                                   0x80, 0x80,
                                   0x80, 0x01,
                                   0x09, 0x80,
                                   0x80, 0x10,
                                   0x0B, 0x00,
                                   0x0F, 0x00,
                                   0x11, 0x00,
                                   0x13, 0x00,
                                   0x0A, static_cast<uint8_t>(meta.size())};
  expected.insert(expected.end(), meta.begin(), meta.end());
  const uint8_t behind[] = {0x0E, 0x04, 0x03, 0x02, 0x01, 0x12, 0x0C, 0xE5, 0x0B, 0x00, 0x6B};
  expected.insert(expected.end(), std::begin(behind), std::end(behind));
  EXPECT_THAT(std::vector<uint8_t>(file.begin() + 1025,
                                   file.begin() + 1025 + static_cast<long>(expected.size())),
              ElementsAreArray(expected));
  EXPECT_EQ(file[file.size() - 5], 0x10);
  EXPECT_EQ(writer->position(), file.size());
}

TEST(RtcWriter, FileWithoutDataNamesItsStreams) {
  VectorSink sink;
  auto writer = Writer::create(sink);
  ASSERT_TRUE(writer->open_stream(named("quiet", "utf-8")).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(checked(sink).units_with(CrcState::kIeee), 1u);
  auto reader = Reader::open(sink.bytes());
  ASSERT_EQ(reader->streams().size(), 1u);
  EXPECT_EQ(reader->streams()[0]->name, "quiet");
}

// Sheet section 6, fault 1: Meta and Index beyond 1024 bytes.
TEST(RtcWriter, MetaAndIndexMayBeLargerThanAFrame) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {65536, 8192};
  auto writer = Writer::create(sink, options);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 400; ++i) {
    StreamInfo info = named(("extra-" + std::to_string(i)).c_str());
    info.extra.emplace_back("note", "\"" + std::string(20, 'x') + "\"");
    const auto id = writer->open_stream(std::move(info));
    ASSERT_TRUE(id.ok()) << i;
    ids.push_back(id.value());
  }
  for (int round = 0; round < 20; ++round) {
    for (const uint64_t id : ids) ASSERT_TRUE(writer->write(id, bytes_of("value")).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const Summary summary = checked(sink);
  EXPECT_GE(summary.units.size(), 2u);
  EXPECT_EQ(summary.streams.size(), 400u);
  EXPECT_EQ(summary.objects, 8000u);
}

// Fault 2: frames of a fixed length at boundaries. Every place of the boundary is tried.
TEST(RtcWriter, FixedLengthFramesAreNeverSplit) {
  for (uint32_t length : {1u, 2u, 7u, 100u, 700u, 1024u}) {
    VectorSink sink;
    WriterOptions options;
    options.geometry = {16384, 4096};
    auto writer = Writer::create(sink, options);
    StreamInfo info = named("sample");
    info.length = length;
    const uint64_t sample = writer->open_stream(info).value();
    const uint64_t filler = writer->open_stream(named("filler")).value();
    for (uint32_t i = 0; i < 3000; ++i) {
      std::vector<uint8_t> value(length, static_cast<uint8_t>(i));
      ASSERT_TRUE(writer->write(sample, value).ok());
      ASSERT_TRUE(writer->write(filler, Bytes(value).first(i % length % 11)).ok());
    }
    ASSERT_TRUE(writer->finish().ok());
    const Summary summary = checked(sink);
    EXPECT_EQ(summary.streams[0].objects, 3000u);
    EXPECT_EQ(summary.streams[0].bytes, 3000u * length);
  }
}

// Fault 3: a stop at every distance from a minor boundary and from the end of a Unit.
TEST(RtcWriter, StopAnywhereHasAValidCrc) {
  for (const SpecialFrames special : {SpecialFrames::kFixed, SpecialFrames::kPrefixed}) {
    for (size_t fill = 0; fill < 3200; ++fill) {
      VectorSink sink;
      WriterOptions options;
      options.geometry = {4096, 2048};
      options.special = special;
      auto writer = Writer::create(sink, options);
      const uint64_t id = writer->open_stream(named("x")).value();
      const std::vector<uint8_t> data(fill, 0x55);
      ASSERT_TRUE(writer->write(id, data).ok());
      const uint64_t at_most = writer->position_after_finish();
      ASSERT_TRUE(writer->finish().ok());
      ASSERT_LE(sink.bytes().size(), at_most) << fill;
      const auto summary = check_file(sink.bytes());
      ASSERT_TRUE(summary.ok());
      ASSERT_TRUE(summary->findings.list().empty()) << fill;
      ASSERT_EQ(summary->units_with(CrcState::kIeee), summary->units.size()) << fill;
      ASSERT_EQ(summary->streams[0].bytes, fill);
    }
  }
}

// What files are rolled by: never less than they will have, and not much more.
TEST(RtcWriter, KnowsWhereItWouldEnd) {
  for (const size_t streams : {0u, 1u, 60u}) {
    for (const bool begun : {false, true}) {
      VectorSink sink;
      auto writer = Writer::create(sink);
      for (size_t i = 0; i < streams; ++i) {
        ASSERT_TRUE(writer->open_stream(named(("s" + std::to_string(i)).c_str())).ok());
      }
      if (begun) {
        ASSERT_TRUE(writer->flush().ok());
      }
      const uint64_t at_most = writer->position_after_finish();
      ASSERT_TRUE(writer->finish().ok());
      EXPECT_GE(at_most, sink.bytes().size()) << streams;
      // An entry of the Index is counted with its largest distance.
      EXPECT_LE(at_most, sink.bytes().size() + 60 + 6 * streams) << streams;
      EXPECT_EQ(writer->position_after_finish(), sink.bytes().size());
    }
  }
}

// Fault 4: a stream created at every place of a Unit.
TEST(RtcWriter, StreamMayBeOpenedAnywhere) {
  for (size_t fill = 0; fill < 3300; ++fill) {
    VectorSink sink;
    WriterOptions options;
    options.geometry = {4096, 2048};
    auto writer = Writer::create(sink, options);
    const uint64_t id = writer->open_stream(named("x")).value();
    const std::vector<uint8_t> data(fill, 0x55);
    ASSERT_TRUE(writer->write(id, data).ok());
    StreamInfo late = named("late", "utf-8");
    late.extra.emplace_back("note", "\"" + std::string(100, 'n') + "\"");
    const auto late_id = writer->open_stream(late);
    ASSERT_TRUE(late_id.ok()) << fill;
    ASSERT_TRUE(writer->write(late_id.value(), bytes_of("late!")).ok());
    ASSERT_TRUE(writer->finish().ok());
    const auto summary = check_file(sink.bytes());
    ASSERT_TRUE(summary.ok());
    ASSERT_TRUE(summary->findings.list().empty()) << fill;
    ASSERT_EQ(summary->objects, 2u) << fill;
    ASSERT_LE(summary->units.size(), 2u) << fill;
  }
}

// Fault 5: several writers at once, on threads of their own, and empty objects.
TEST(RtcWriter, ManyWritersWorkSideBySide) {
  std::vector<std::vector<uint8_t>> files(4);
  std::vector<std::thread> threads;
  for (size_t n = 0; n < files.size(); ++n) {
    threads.emplace_back([&files, n] {
      testing::Plan plan;
      plan.seed = 77;
      plan.options.geometry = {8192, 2048};
      files[n] = testing::make_random(plan).file;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& file : files) EXPECT_EQ(file, files[0]);
}

TEST(RtcWriter, EmptyObjectsAreObjects) {
  VectorSink sink;
  auto writer = Writer::create(sink);
  const uint64_t id = writer->open_stream(named("x")).value();
  StreamInfo event = named("event");
  event.length = 0;
  const uint64_t event_id = writer->open_stream(event).value();
  ASSERT_TRUE(writer->write(id, {}).ok());
  ASSERT_TRUE(writer->write(id, {}, true).ok());
  ASSERT_TRUE(writer->write(id, bytes_of("a"), true).ok());
  ASSERT_TRUE(writer->write(id, {}).ok());
  ASSERT_TRUE(writer->write(event_id, {}).ok());
  EXPECT_EQ(writer->write(event_id, bytes_of("x")).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer->finish().ok());
  const Summary summary = checked(sink);
  EXPECT_EQ(summary.objects, 3u);
  EXPECT_EQ(summary.streams[0].bytes, 1u);
}

// Sheet section 8, decision 2: no id whose frames could pass for a Marker.
TEST(RtcWriter, WithholdsIdsThatCouldForgeAMarker) {
  EXPECT_TRUE(id_may_forge_marker(92, -1));
  EXPECT_TRUE(id_may_forge_marker(156, -1));
  EXPECT_TRUE(id_may_forge_marker(412, -1));
  EXPECT_FALSE(id_may_forge_marker(28, -1));
  EXPECT_FALSE(id_may_forge_marker(93, -1));
  for (uint64_t id = 256; id < 320; ++id) EXPECT_TRUE(id_may_forge_marker(id, 1024)) << id;
  EXPECT_FALSE(id_may_forge_marker(255, 1024));
  EXPECT_FALSE(id_may_forge_marker(320, 1024));
  EXPECT_TRUE(id_may_forge_marker(257, 1024));
  EXPECT_FALSE(id_may_forge_marker(257, 1023));

  VectorSink sink;
  auto writer = Writer::create(sink);
  for (int i = 0; i < 400; ++i) {
    StreamInfo info = named(("s" + std::to_string(i)).c_str());
    if (i % 50 == 49) info.length = 1024;
    const int length = info.length ? 1024 : -1;
    const uint64_t id = writer->open_stream(info).value();
    EXPECT_FALSE(id_may_forge_marker(id, length)) << id;
  }
}

// For any payload, no Marker is where none was written.
TEST(RtcWriter, PayloadsOfMarkersForgeNothing) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {65536, 65536};
  auto writer = Writer::create(sink, options);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 330; ++i) {
    ids.push_back(writer->open_stream(named(("s" + std::to_string(i)).c_str())).value());
  }
  std::vector<uint8_t> forged(4 * kMarkerBytes, kMarkerFill);
  for (size_t i = 0; i < 4; ++i) forged[i * kMarkerBytes] = kMarkerFirstByte;
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(writer->write(ids[i], Bytes(forged).first(1024)).ok());
    ASSERT_TRUE(writer->write(ids[(i * 7) % ids.size()], Bytes(forged).subspan(i), false).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const Summary summary = checked(sink);
  // A reader that finds its way from the first byte of each Unit only, from everywhere.
  for (uint64_t cut = 1; cut < sink.bytes().size(); cut += 9973) {
    auto reader = Reader::open(Bytes(sink.bytes()).subspan(cut));
    if (!reader) continue;
    EXPECT_EQ((reader->head_bytes() + cut) % 65536, 0u) << cut;
  }
  EXPECT_EQ(summary.units_with(CrcState::kIeee), summary.units.size());
}

// Decision 6: the clock is the first data frame behind every Index and index.
TEST(RtcWriter, ClocksFollowEveryIndex) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {8192, 2048};
  auto writer = Writer::create(sink, options);
  const uint64_t clk = writer->open_stream(clock_named("clk")).value();
  StreamInfo delta = clock_named("delta", "uleb128");
  delta.gain = 1e-6;
  delta.delta = "clk";
  const uint64_t delta_id = writer->open_stream(delta).value();
  const uint64_t data = writer->open_stream(named("data")).value();
  const std::vector<uint8_t> page(700, 1);
  const auto five = std::array<uint8_t, 1>{5};
  for (uint64_t i = 0; i < 100; ++i) {
    if (i % 10 == 0) {
      ASSERT_TRUE(writer->write(clk, timespec(1000000000 + i * 1000)).ok());
    } else if (i % 10 == 5) {
      ASSERT_TRUE(writer->write(delta_id, five).ok());
    }
    ASSERT_TRUE(writer->write(data, page).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  checked(sink);
  auto reader = Reader::open(sink.bytes());
  std::vector<uint64_t> order;
  for (Frame frame; reader->next_frame(frame);) order.push_back(frame.id);
  size_t indices = 0;
  size_t deltas = 0;
  for (size_t i = 0; i + 2 < order.size(); ++i) {
    const bool index = order[i] == kMinorIndexId;
    if (!index && (order[i] != kPlatformId || i < 5)) continue;
    ++indices;
    EXPECT_EQ(order[i + 1], clk);
    deltas += order[i + 2] == delta_id;
  }
  EXPECT_GT(indices, 30u);
  // Only while its base is what it was at its last value: from the fifth to the ninth of ten.
  EXPECT_GT(deltas, indices / 4);
  EXPECT_LT(deltas, indices * 3 / 4);
}

TEST(RtcWriter, RefusesWhatWouldNotBeReadable) {
  VectorSink sink;
  auto writer = Writer::create(sink);
  const auto code = [&](StreamInfo info) {
    const auto id = writer->open_stream(std::move(info));
    return id.ok() ? std::optional<Code>() : id.code();
  };
  StreamInfo too_long = named("long");
  too_long.length = 1025;
  EXPECT_EQ(code(too_long), Code::kInvalidArgument);
  EXPECT_EQ(code(clock_named("text", "utf-8")), Code::kInvalidArgument);
  EXPECT_EQ(code(clock_named("", "timespec")), Code::kInvalidArgument);
  EXPECT_EQ(code(clock_named("clk")), std::nullopt);
  EXPECT_EQ(code(named("clk")), Code::kAlreadyExists);
  StreamInfo orphan = named("orphan");
  orphan.clock = "absent";
  EXPECT_EQ(code(orphan), Code::kNotFound);
  StreamInfo note = named("note", "annotate/utf-8");
  note.stream = "absent";
  EXPECT_EQ(code(note), Code::kNotFound);
  EXPECT_EQ(code(named("\xff\xfe")), Code::kInvalidArgument);
  StreamInfo extra = named("extra");
  extra.extra.emplace_back("id", "1");
  EXPECT_EQ(code(extra), Code::kInvalidArgument);
  extra.extra[0] = {"bad", "{"};
  EXPECT_EQ(code(extra), Code::kInvalidArgument);
  StreamInfo wrong_clock_length = clock_named("c2");
  wrong_clock_length.length = 8;
  EXPECT_EQ(code(wrong_clock_length), Code::kInvalidArgument);

  EXPECT_EQ(writer->write(99, bytes_of("x")).code(), Code::kNotFound);
  EXPECT_EQ(writer->write(9, bytes_of("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->write(9, timespec(1), true).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(writer->write(9, timespec(1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->finish().code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->open_stream(named("late")).code(), Code::kInvalidArgument);
  checked(sink);
}

// Bytes behind a LEB128 number belong to no value, but others write them.
TEST(RtcWriter, ClocksValueHasALimit) {
  VectorSink sink;
  auto writer = Writer::create(sink);
  const uint64_t clk = writer->open_stream(clock_named("clk", "uleb128")).value();
  const std::vector<uint8_t> value(kMaxClockBytes + 1, 5);
  EXPECT_EQ(writer->write(clk, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->write(clk, value).code(), Code::kInvalidArgument);
  EXPECT_TRUE(writer->write(clk, Bytes(value).first(kMaxClockBytes)).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(checked(sink).first_time_ns, 5000000000);
}

TEST(RtcWriter, RefusesUnitsThatAreNone) {
  VectorSink sink;
  for (const Geometry& geometry :
       {Geometry{1024, 1024}, Geometry{3000, 2048}, Geometry{8192, 1024}, Geometry{2048, 4096},
        Geometry{kMaxUnitBytes * 2, 2048}, Geometry{0, 0}}) {
    WriterOptions options;
    options.geometry = geometry;
    EXPECT_EQ(Writer::create(sink, options).code(), Code::kInvalidArgument);
  }
  const auto message = [](const Geometry& geometry) {
    return check_geometry(geometry).error().message;
  };
  EXPECT_EQ(message({1024, 1024}), "a unit of 1024 bytes is no power of two from 2048 to 2^40");
  EXPECT_EQ(message({2048, 4096}), "the minor unit is larger than the Unit");
  EXPECT_TRUE(check_geometry({2048, 2048}).ok());
  EXPECT_TRUE(check_geometry({kMaxUnitBytes, kMaxUnitBytes}).ok());
}

// Streams until Index and Meta leave no room; what was accepted works.
TEST(RtcWriter, SmallUnitsTakeStreamsUntilTheyAreFull) {
  for (const Geometry& geometry : {Geometry{2048, 2048}, Geometry{4096, 2048}, Geometry{8192, 2048},
                                   Geometry{8192, 8192}, Geometry{65536, 2048}}) {
    VectorSink sink;
    WriterOptions options;
    options.geometry = geometry;
    auto writer = Writer::create(sink, options);
    std::vector<uint64_t> ids;
    for (;;) {
      StreamInfo info = named(("stream" + std::to_string(ids.size())).c_str());
      if (ids.size() % 9 == 4) info = clock_named(info.name.c_str());
      const auto id = writer->open_stream(info);
      if (!id) {
        EXPECT_EQ(id.code(), Code::kLimit);
        break;
      }
      ids.push_back(id.value());
    }
    EXPECT_GE(ids.size(), 4u) << geometry.unit_bytes;
    for (int round = 0; round < 60; ++round) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const Bytes value = i % 9 == 4 ? Bytes() : bytes_of("0123456789");
        if (i % 9 == 4) {
          ASSERT_TRUE(writer->write(ids[i], timespec(static_cast<uint64_t>(round) + 1)).ok());
        } else {
          ASSERT_TRUE(writer->write(ids[i], value).ok());
        }
      }
    }
    ASSERT_TRUE(writer->finish().ok());
    EXPECT_GT(checked(sink).units.size(), 2u);
  }
}

TEST(RtcWriter, ClosedStreamsLeaveMetaAndTheirIdsStayTheirs) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {8192, 2048};
  auto writer = Writer::create(sink, options);
  const uint64_t clk = writer->open_stream(clock_named("clk")).value();
  StreamInfo timed = named("timed");
  timed.clock = "clk";
  const uint64_t timed_id = writer->open_stream(timed).value();
  ASSERT_TRUE(writer->write(timed_id, bytes_of("half"), true).ok());
  EXPECT_EQ(writer->close_stream(timed_id).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer->write(timed_id, bytes_of("whole")).ok());
  EXPECT_EQ(writer->close_stream(clk).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer->close_stream(timed_id).ok());
  EXPECT_EQ(writer->stream(timed_id), nullptr);
  EXPECT_EQ(writer->write(timed_id, bytes_of("x")).code(), Code::kNotFound);
  const uint64_t next = writer->open_stream(named("timed")).value();
  EXPECT_GT(next, timed_id);
  const std::vector<uint8_t> page(9000, 7);
  ASSERT_TRUE(writer->write(next, page).ok());
  ASSERT_TRUE(writer->close_stream(clk).ok());
  ASSERT_TRUE(writer->finish().ok());
  checked(sink);
  auto reader = Reader::open(sink.bytes());
  ASSERT_TRUE(reader->seek_unit(1).ok());
  EXPECT_EQ(reader->stream(timed_id), nullptr);
  ASSERT_NE(reader->stream(next), nullptr);
}

// Streams that come and go, clocks among them, for as long as there are ids.
TEST(RtcWriter, ClosedStreamsGiveTheirRoomBack) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {8192, 2048};
  auto writer = Writer::create(sink, options);
  const uint64_t at_most = writer->position_after_finish();
  for (int i = 0; i < 5000; ++i) {
    const auto id = writer->open_stream(i % 2 == 0 ? named("data") : clock_named("clk"));
    ASSERT_TRUE(id.ok()) << i;
    ASSERT_GT(writer->position_after_finish(), at_most);
    ASSERT_TRUE(writer->close_stream(id.value()).ok());
    ASSERT_EQ(writer->position_after_finish(), at_most) << i;
  }
}

// Behind an index either all clocks stand or none, and none only where there is no room for them,
// wherever Meta ends.
TEST(RtcWriter, ClocksAreRepeatedTogetherOrNotAtAll) {
  size_t without = 0;
  for (size_t note = 1760; note < 1900; ++note) {
    VectorSink sink;
    WriterOptions options;
    options.geometry = {8192, 2048};
    auto writer = Writer::create(sink, options);
    // The last ids that take one byte.
    for (int i = 0; i < 51; ++i) {
      ASSERT_TRUE(writer->close_stream(writer->open_stream(named("gone")).value()).ok());
    }
    const uint64_t first = writer->open_stream(clock_named("a")).value();
    const uint64_t second = writer->open_stream(clock_named("b")).value();
    StreamInfo data = named("data");
    data.extra.emplace_back("note", "\"" + std::string(note, 'n') + "\"");
    const uint64_t data_id = writer->open_stream(data).value();
    ASSERT_TRUE(writer->write(first, timespec(1)).ok());
    ASSERT_TRUE(writer->write(second, timespec(2)).ok());
    ASSERT_TRUE(writer->write(data_id, std::vector<uint8_t>(20000, 1)).ok());
    ASSERT_TRUE(writer->finish().ok());
    checked(sink);
    auto reader = Reader::open(sink.bytes());
    std::vector<Frame> frames;
    for (Frame frame; reader->next_frame(frame);) frames.push_back(frame);
    for (size_t i = 0; i + 2 < frames.size(); ++i) {
      if (frames[i].offset < 8192 || frames[i].id != kPlatformId) continue;
      if (frames[i + 1].id == first) {
        EXPECT_EQ(frames[i + 2].id, second) << note;
      } else {
        // Each takes an id, a length and 12 bytes.
        const auto index =
            std::find_if(frames.begin() + static_cast<ptrdiff_t>(i), frames.end(),
                         [](const Frame& frame) { return frame.id == kMinorIndexId; });
        ASSERT_NE(index, frames.end());
        EXPECT_LT(index->offset - frames[i + 1].offset, 28u) << note;
        ++without;
      }
    }
  }
  EXPECT_GE(without, 28u);
}

class FullSink final : public ByteSink {
 public:
  explicit FullSink(size_t room) : room_(room) {}
  Status write(Bytes bytes) override {
    if (bytes.size() > room_) return Error{Code::kNoSpace, "full"};
    room_ -= bytes.size();
    return {};
  }

 private:
  size_t room_;
};

TEST(RtcWriter, ErrorOfTheSinkEndsIt) {
  FullSink sink(300000);
  auto writer = Writer::create(sink);
  const uint64_t id = writer->open_stream(named("x")).value();
  const std::vector<uint8_t> page(65536, 1);
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = writer->write(id, page);
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_EQ(writer->write(id, page).code(), Code::kNoSpace);
  EXPECT_EQ(writer->flush().code(), Code::kNoSpace);
  EXPECT_EQ(writer->finish().code(), Code::kNoSpace);
  EXPECT_EQ(writer->open_stream(named("y")).code(), Code::kNoSpace);
}

}  // namespace
}  // namespace collect::rtc
