// What the writer says about its own file: every entry of every Index and index against the frames
// that stand there, and how long the file will be.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "formats/rtc/index_entries.h"
#include "formats/rtc/meta/meta.h"
#include "formats/rtc/read/reader.h"
#include "formats/rtc/writer.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

StreamInfo named(const std::string& name, const char* format = "raw") {
  StreamInfo info;
  info.name = name;
  info.format = Format::parse(format);
  return info;
}

StreamInfo clock_named(const std::string& name, const char* format = "timespec") {
  StreamInfo info = named(name, format);
  info.is_clock = true;
  return info;
}

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

Pairs pairs_of(const IndexEntries& index) {
  Pairs pairs;
  for (const IndexEntry& entry : index.entries) pairs.emplace_back(entry.id, entry.distance);
  return pairs;
}

// FORMAT.md "Index entries", distinguished from the frames as they come. One write is one object
// here.
class Occurrences {
 public:
  explicit Occurrences(const Geometry& geometry) : geometry_(geometry) {}

  void take(const Frame& frame, const std::vector<uint64_t>& open) {
    switch (frame.id) {
      case kIndexId:
        return index(frame, open);
      case kMinorIndexId:
        return minor_index(frame, open);
      case kMetaId: {
        std::vector<uint8_t> meta(frame.payload.begin(), frame.payload.end());
        if (meta != meta_) seen_[kMetaId] = frame.offset;
        meta_ = std::move(meta);
        return;
      }
      case kCrcId:
        seen_[kCrcId] = frame.offset;
        return;
      default:
        if (frame.id != kPlatformId &&
            (frame.stream == nullptr || frame.offset != frame.object_offset)) {
          return;
        }
        if (seen_[frame.id] < section_at_) seen_[frame.id] = frame.offset;
    }
  }
  uint64_t units() const { return units_; }
  size_t minor_entries() const { return minor_entries_; }

 private:
  void index(const Frame& frame, const std::vector<uint64_t>& open) {
    const auto since = [&](uint64_t id) { return seen_[id] == 0 ? 0 : frame.offset - seen_[id]; };
    Pairs expected = {{kIndexId, geometry_.unit_bytes}, {kMinorIndexId, geometry_.minor_bytes}};
    for (const uint64_t id : {kMetaId, kPlatformId, kCrcId}) expected.emplace_back(id, since(id));
    for (const uint64_t id : open) expected.emplace_back(id, since(id));
    const auto entries = parse_index(frame.payload, true);
    ASSERT_TRUE(entries.ok());
    EXPECT_EQ(entries->count, units_);
    EXPECT_EQ(pairs_of(*entries), expected) << frame.offset;
    ++units_;
    index_at_ = section_at_ = frame.offset;
  }
  void minor_index(const Frame& frame, const std::vector<uint64_t>& open) {
    Pairs expected = {{kIndexId, frame.offset - index_at_}};
    std::vector<uint64_t> ids = {kMetaId, kPlatformId};
    ids.insert(ids.end(), open.begin(), open.end());
    for (const uint64_t id : ids) {
      if (seen_[id] >= index_at_) expected.emplace_back(id, frame.offset - seen_[id]);
    }
    const auto entries = parse_index(frame.payload, false);
    ASSERT_TRUE(entries.ok());
    EXPECT_EQ(pairs_of(*entries), expected) << frame.offset;
    minor_entries_ += expected.size();
    section_at_ = frame.offset;
  }

  Geometry geometry_;
  std::map<uint64_t, uint64_t> seen_;
  std::vector<uint8_t> meta_;
  uint64_t index_at_ = 0;
  uint64_t section_at_ = 0;
  uint64_t units_ = 0;
  size_t minor_entries_ = 0;
};

TEST(RtcWriterIndex, EveryEntryLeadsToTheLastOccurrence) {
  VectorSink sink;
  WriterOptions options;
  options.geometry = {16384, 2048};
  auto writer = Writer::create(sink, options);
  EXPECT_EQ(writer->units(), 0u);
  const uint64_t clk = writer->open_stream(clock_named("clk", "uint8")).value();
  std::vector<uint64_t> open;
  for (const char* name : {"often", "now and then", "rare", "never"}) {
    open.push_back(writer->open_stream(named(name)).value());
  }
  std::map<uint64_t, std::vector<uint64_t>> open_from = {{0, open}};
  open_from[0].insert(open_from[0].begin(), clk);
  std::mt19937_64 random(4);
  const std::vector<uint8_t> bytes(5000, 1);
  for (int i = 0; i < 500; ++i) {
    if (i % 7 == 0) {
      ASSERT_TRUE(writer->write(clk, Bytes(bytes).first(1)).ok());
    }
    const uint64_t id = i % 150 == 149 ? open[2] : i % 20 == 19 ? open[1] : open[0];
    ASSERT_TRUE(writer->write(id, Bytes(bytes).first(random() % (i % 10 == 0 ? 5000 : 300))).ok());
    if (i == 250) {
      ASSERT_TRUE(writer->close_stream(open[3]).ok());
      open_from[writer->position()] = {clk, open[0], open[1], open[2]};
    }
    if (i == 350) {
      const uint64_t late = writer->open_stream(named("late")).value();
      open_from[writer->position()] = {clk, open[0], open[1], open[2], late};
      ASSERT_TRUE(writer->write(late, Bytes(bytes).first(10)).ok());
    }
  }
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(writer->position_after_finish(), sink.bytes().size());

  Occurrences occurrences(options.geometry);
  auto reader = Reader::open(sink.bytes());
  ASSERT_TRUE(reader.ok());
  for (Frame frame; reader->next_frame(frame);) {
    occurrences.take(frame, std::prev(open_from.upper_bound(frame.offset))->second);
    if (HasFailure()) return;
  }
  EXPECT_EQ(occurrences.units(), writer->units());
  EXPECT_GT(occurrences.units(), 5u);
  EXPECT_GT(occurrences.minor_entries(), 100u);
}

// The bound is what the frames of FORMAT.md take at most: an entry with the distance of a whole
// Unit, a count and a Crc frame of ten bytes, three bytes of header for each special frame, a
// clock's header and value.
TEST(RtcWriterIndex, EndIsCountedFrameByFrame) {
  for (const bool begun : {false, true}) {
    VectorSink sink;
    auto writer = Writer::create(sink);
    if (begun) {
      ASSERT_TRUE(writer->flush().ok());
    }
    const auto frames = [](size_t payload) { return payload + (payload / 1024 + 1) * 3; };
    constexpr size_t kDistance = 4;  // 2 << 20
    size_t entries = 10 + 5 * (1 + kDistance);
    size_t meta = 12;  // "[", the next free id, "]"
    size_t clocks = 0;
    for (int i = 0; i < 300; ++i) {
      const size_t head = begun ? writer->position() : kMarkerBytes + frames(meta);
      ASSERT_EQ(writer->position_after_finish(), head + frames(entries) + clocks + 20) << i;
      const char* format = i % 8 == 1 ? "uint16" : i % 8 == 2 ? "timespec" : "uleb128";
      StreamInfo info = i % 4 != 0 ? clock_named("clock " + std::to_string(i), format)
                                   : named("data " + std::to_string(i), format);
      const bool is_clock = info.is_clock;
      const uint64_t id = writer->open_stream(info).value();
      info.id = id;
      const size_t id_bytes = id < 64 ? 1 : 2;
      entries += id_bytes + kDistance;
      meta += stream_json(info).value().size() + 1;
      const size_t value = i % 8 == 1 ? 2 : i % 8 == 2 ? 12 : 10;
      if (is_clock) clocks += id_bytes + 1 + value;
    }
  }
}

}  // namespace
}  // namespace collect::rtc
