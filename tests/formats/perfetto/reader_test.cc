// Packets written from Perfetto's protos by their numbers, not by our own writer.
#include "formats/perfetto/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>

#include "formats/core/encoding/protobuf.h"
#include "tests/formats/core/recorded_timeline.h"

namespace collect::perfetto {
namespace {

using collect::testing::RecordedTimeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Octets = std::vector<uint8_t>;
using Fill = std::function<void(ProtoWriter&)>;

class TraceFile {
 public:
  TraceFile& packet(const Fill& fill) {
    ProtoWriter proto(bytes_);
    const size_t at = proto.begin(1);
    fill(proto);
    proto.end(at);
    return *this;
  }
  const Octets& bytes() const { return bytes_; }

 private:
  Octets bytes_;
};

void message(ProtoWriter& proto, uint32_t field, const Fill& fill) {
  const size_t at = proto.begin(field);
  fill(proto);
  proto.end(at);
}

// TrackDescriptor of a thread, of a process.
Fill thread_track(uint64_t uuid, uint64_t pid, uint64_t tid, std::string_view name) {
  return [=](ProtoWriter& p) {
    message(p, 60, [=](ProtoWriter& track) {
      track.varint(1, uuid);
      message(track, 4, [=](ProtoWriter& thread) {
        thread.varint(1, pid);
        thread.varint(2, tid);
        thread.text(5, name);
      });
    });
  };
}
Fill process_track(uint64_t uuid, uint64_t pid, std::string_view name) {
  return [=](ProtoWriter& p) {
    message(p, 60, [=](ProtoWriter& track) {
      track.varint(1, uuid);
      message(track, 3, [=](ProtoWriter& process) {
        process.varint(1, pid);
        process.text(6, name);
      });
    });
  };
}

// An event of a track by inline name, at a time of the default clock.
Fill event(uint64_t ns, uint64_t type, uint64_t uuid, std::string_view name = {}) {
  return [=](ProtoWriter& p) {
    p.varint(8, ns);
    p.varint(10, 1);
    message(p, 11, [=](ProtoWriter& e) {
      e.varint(9, type);
      e.varint(11, uuid);
      if (!name.empty()) e.text(23, name);
    });
  };
}

// One sequence with interned names, defaults and an incremental clock.
TraceFile interned_trace() {
  TraceFile file;
  file.packet(process_track(1, 42, "app")).packet(thread_track(2, 42, 43, "main"));
  file.packet([](ProtoWriter& p) {
    p.varint(10, 7);
    p.varint(13, 1);
    p.varint(87, 1);
    message(p, 59, [](ProtoWriter& defaults) {
      defaults.varint(58, 64);
      message(defaults, 11, [](ProtoWriter& track) { track.varint(11, 2); });
    });
    message(p, 6, [](ProtoWriter& snapshot) {
      message(snapshot, 1, [](ProtoWriter& clock) {
        clock.varint(1, 6);
        clock.varint(2, 1000);
      });
      message(snapshot, 1, [](ProtoWriter& clock) {
        clock.varint(1, 64);
        clock.varint(2, 0);
        clock.varint(3, 1);
        clock.varint(4, 10);
      });
    });
  });
  file.packet([](ProtoWriter& p) {
    p.varint(8, 5);
    p.varint(10, 7);
    p.varint(13, 2);
    message(p, 11, [](ProtoWriter& e) {
      e.varint(9, 1);
      e.varint(10, 1);
      e.varint(34, 1);
    });
    message(p, 12, [](ProtoWriter& data) {
      message(data, 2, [](ProtoWriter& name) {
        name.varint(1, 1);
        name.text(2, "parse");
      });
      message(data, 4, [](ProtoWriter& source) {
        source.varint(1, 1);
        source.text(2, "parse.cc");
        source.varint(4, 12);
      });
    });
  });
  const auto step = [](uint64_t delta, uint64_t type, uint64_t name) -> Fill {
    return [=](ProtoWriter& p) {
      p.varint(8, delta);
      p.varint(10, 7);
      p.varint(13, 2);
      message(p, 11, [=](ProtoWriter& e) {
        e.varint(9, type);
        if (name != 0) e.varint(10, name);
      });
    };
  };
  file.packet(step(1, 1, 1)).packet(step(2, 2, 0)).packet(step(0, 3, 1)).packet(step(1, 2, 0));
  return file;
}

TEST(PerfettoReader, ReadsInlineNamesAndDescriptors) {
  TraceFile file;
  file.packet(event(5, 1, 2, "f")).packet(event(9, 2, 2)).packet(event(7, 3, 1, "mark"));
  file.packet(thread_track(2, 42, 43, "main")).packet(process_track(1, 42, "app"));
  RecordedTimeline found;
  ASSERT_TRUE(looks_like_perfetto(file.bytes()));
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 5 f", "end 0 9"));
  EXPECT_THAT(found.markers, ElementsAre("7 mark"));
  EXPECT_THAT(found.said, ElementsAre("track 0", "process 0 pid 42", "process 0 named app",
                                      "track 0 of 0 tid 43", "track 0 named main"));
  EXPECT_THAT(found.lacks, IsEmpty());
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(PerfettoReader, ReadsInternedNamesDefaultsAndSteps) {
  const TraceFile file = interned_trace();
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 1050 parse (parse.cc:12)", "begin 0 1060 parse",
                                       "end 0 1080", "end 0 1090"));
  EXPECT_THAT(found.markers, ElementsAre("1080 parse"));
  EXPECT_THAT(found.lacks, IsEmpty());
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(PerfettoReader, ReadsCompressedPackets) {
  const Octets packets = interned_trace().bytes();
  Octets packed(compressBound(packets.size()));
  uLongf size = packed.size();
  ASSERT_EQ(compress(packed.data(), &size, packets.data(), packets.size()), Z_OK);
  packed.resize(size);
  TraceFile file;
  file.packet([&](ProtoWriter& p) { p.bytes(50, packed); });
  RecordedTimeline found, plain;
  ASSERT_TRUE(looks_like_perfetto(file.bytes()));
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  ASSERT_TRUE(read_packets(packets, plain).ok());
  EXPECT_EQ(found.calls, plain.calls);
  EXPECT_EQ(found.said, plain.said);
  packed.pop_back();
  TraceFile cut;
  cut.packet([&](ProtoWriter& p) { p.bytes(50, packed); });
  RecordedTimeline none;
  ASSERT_TRUE(read_packets(cut.bytes(), none).ok());
  EXPECT_THAT(none.calls, IsEmpty());
  EXPECT_THAT(none.lacks, ElementsAre(HasSubstr("at 0: compressed packets: ")));
}

TEST(PerfettoReader, LostPacketsTakeTheStateWithThem) {
  TraceFile file = interned_trace();
  file.packet([](ProtoWriter& p) {
    p.varint(8, 5);
    p.varint(10, 7);
    p.varint(13, 2);
    p.varint(42, 1);
    message(p, 11, [](ProtoWriter& e) {
      e.varint(9, 1);
      e.varint(10, 1);
    });
  });
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_EQ(found.calls.size(), 4u);
  EXPECT_THAT(found.lacks, ElementsAre(HasSubstr("1 packets whose names and defaults")));
}

TEST(PerfettoReader, ClocksGoThroughTheSnapshot) {
  TraceFile file;
  file.packet([](ProtoWriter& p) {
    message(p, 6, [](ProtoWriter& snapshot) {
      for (const auto& [id, ns] : {std::pair<uint64_t, uint64_t>{6, 500}, {3, 200}}) {
        message(snapshot, 1, [clock_id = id, clock_ns = ns](ProtoWriter& clock) {
          clock.varint(1, clock_id);
          clock.varint(2, clock_ns);
        });
      }
    });
  });
  const auto on_clock = [](uint64_t clock) -> Fill {
    return [=](ProtoWriter& p) {
      event(210, 1, 2, "f")(p);
      p.varint(58, clock);
    };
  };
  file.packet(on_clock(3)).packet(on_clock(6)).packet(on_clock(5));
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 510 f", "begin 0 210 f"));
  EXPECT_THAT(found.left_out,
              ElementsAre(Pair("events without a time, or on a clock without a snapshot", 1)));
}

TEST(PerfettoReader, TracksBelongToTheProcessAboveThem) {
  TraceFile file;
  const auto child = [](uint64_t uuid, uint64_t parent, std::string_view name) -> Fill {
    return [=](ProtoWriter& p) {
      message(p, 60, [=](ProtoWriter& track) {
        track.varint(1, uuid);
        track.text(2, name);
        track.varint(5, parent);
      });
    };
  };
  file.packet(process_track(1, 42, "app")).packet(child(2, 1, "group")).packet(child(3, 2, "jobs"));
  file.packet(child(8, 9, "ring")).packet(child(9, 8, "ring"));
  file.packet(event(1, 1, 3, "f")).packet(event(1, 1, 8, "g")).packet(event(1, 1, 99, "h"));
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.said,
              ElementsAre("track 0", "track 1", "track 2", "process 0 pid 42",
                          "process 0 named app", "track 0 of 0 tid 0", "track 0 named jobs",
                          "track 1 named ring", "track 2 named "));
}

TEST(PerfettoReader, EverythingElseIsCounted) {
  TraceFile file;
  file.packet([](ProtoWriter& p) { p.text(1, "ftrace"); });
  file.packet([](ProtoWriter& p) { p.text(2, ""); });
  file.packet([](ProtoWriter& p) { p.text(33, "config"); });
  file.packet([](ProtoWriter& p) { p.text(1000, "other"); });
  file.packet(event(1, 4, 2));
  file.packet([](ProtoWriter& p) {
    p.varint(8, 4);
    message(p, 11, [](ProtoWriter& e) {
      e.varint(9, 1);
      e.text(4, "");
      e.fixed64(47, 1);
    });
  });
  file.packet([](ProtoWriter& p) { message(p, 11, [](ProtoWriter& e) { e.varint(9, 1); }); });
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 4 "));
  EXPECT_THAT(
      found.left_out,
      UnorderedElementsAre(Pair("packets of kernel events (ftrace)", 1),
                           Pair("packets of processes and their figures", 1),
                           Pair("packets of other data sources", 1), Pair("values of counters", 1),
                           Pair("annotations of events", 1), Pair("flows", 1),
                           Pair("events without a time, or on a clock without a snapshot", 1)));
}

TEST(PerfettoReader, OlderEventsHaveTheirPhase) {
  TraceFile file;
  for (const char phase : {'B', 'E', 'X', 'I'}) {
    file.packet([=](ProtoWriter& p) {
      p.varint(8, 10);
      p.varint(10, 3);
      message(p, 11, [=](ProtoWriter& e) {
        e.text(23, "f");
        message(e, 6, [=](ProtoWriter& legacy) {
          legacy.varint(2, static_cast<uint64_t>(phase));
          legacy.varint(3, 2);
        });
      });
    });
  }
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 10 f", "end 0 10", "call 0 10 2000 f"));
  EXPECT_THAT(found.left_out, ElementsAre(Pair("events of no type, or of an older one", 1)));
}

TEST(PerfettoReader, EveryPrefixIsReadOrRefused) {
  const Octets whole = interned_trace().bytes();
  std::vector<size_t> ends;
  for (ProtoFields fields(whole); fields.next();) ends.push_back(fields.offset());
  for (size_t size = 1; size < whole.size(); ++size) {
    RecordedTimeline found;
    const Status read = read_packets(Bytes(whole).first(size), found);
    EXPECT_EQ(read.ok(), size >= ends[1]) << size;
    const bool at_end = std::find(ends.begin(), ends.end(), size) != ends.end();
    EXPECT_EQ(read.ok() && found.lacks.empty(), at_end) << size;
  }
}

TEST(PerfettoReader, EveryFlippedByteIsReadOrRefused) {
  Octets bytes = interned_trace().bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1 << bit);
      RecordedTimeline found;
      (void)looks_like_perfetto(bytes);
      (void)read_packets(bytes, found);
      EXPECT_LE(found.calls.size(), 5u);
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1 << bit);
    }
  }
}

TEST(PerfettoReader, SequencesHaveALimit) {
  TraceFile file;
  for (uint64_t id = 1; id <= kMaxSequences + 1; ++id) {
    file.packet([=](ProtoWriter& p) { p.varint(10, id); });
  }
  RecordedTimeline found;
  ASSERT_TRUE(read_packets(file.bytes(), found).ok());
  EXPECT_THAT(found.left_out,
              ElementsAre(Pair("packets of sequences past the number that is followed", 1)));
}

TEST(PerfettoReader, OtherFilesAreNotTaken) {
  for (const Octets& bytes :
       {Octets{}, Octets{0x0a}, Octets{0x0a, 0x00}, Octets{0x0a, 0x02, 'x', 'x'},
        Octets{0x0a, 0x05, 0x08, 0x01}, Octets{0x12, 0x02, 0x50, 0x01}}) {
    EXPECT_FALSE(looks_like_perfetto(bytes));
  }
  EXPECT_TRUE(looks_like_perfetto(Octets{0x0a, 0x02, 0x50, 0x01}));
}

}  // namespace
}  // namespace collect::perfetto
