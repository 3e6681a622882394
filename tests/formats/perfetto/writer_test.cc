// Packets by hand, from the schema. Whole traces go through protoc and an importer by upstream's
// rules in tests/daemon/ctl/export.
#include "formats/perfetto/writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "formats/core/deflate.h"
#include "formats/core/leb128.h"

namespace collect::perfetto {
namespace {

using Raw = std::vector<uint8_t>;

class Runs final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    runs.emplace_back(bytes.begin(), bytes.end());
    return {};
  }
  std::vector<Raw> runs;
};

// The packets of a run, without tag and length.
std::vector<Raw> packets_of(const Raw& run) {
  std::vector<Raw> packets;
  for (size_t at = 0; at < run.size();) {
    EXPECT_EQ(run[at], 0x0a);
    const auto length = read_uleb128(Bytes(run).subspan(at + 1));
    at += 1 + length.size;
    packets.emplace_back(run.begin() + static_cast<ptrdiff_t>(at),
                         run.begin() + static_cast<ptrdiff_t>(at + length.value));
    at += length.value;
  }
  return packets;
}

class PerfettoWriter : public ::testing::Test {
 protected:
  std::vector<Raw> finish() {
    EXPECT_TRUE(writer_.finish().ok());
    return runs_.runs.empty() ? std::vector<Raw>() : packets_of(runs_.runs.front());
  }
  void call(uint64_t ns, uint32_t function) {
    writer_.begin_call(ns, function, [&] { return std::string_view("f"); });
  }

  Runs runs_;
  Writer writer_{runs_};
};

const Raw kState = {0x50, 0x02,                                             // sequence 2
                    0x68, 0x01,                                             // state cleared
                    0xb8, 0x05, 0x01,                                       // first packet
                    0xda, 0x03, 0x07, 0xd0, 0x03, 0x40,                     // defaults: clock 64,
                    0x5a, 0x02, 0x58, 0x07,                                 // and track 7
                    0x32, 0x10,                                             // clock snapshot
                    0x0a, 0x05, 0x08, 0x06, 0x10, 0xe8, 0x07,               // boottime: 1000
                    0x0a, 0x07, 0x08, 0x40, 0x10, 0xe8, 0x07, 0x18, 0x01};  // 64: 1000, steps

// The example of FORMAT.md, and the packets before it.
TEST_F(PerfettoWriter, ACallIsTwoPackets) {
  writer_.begin_thread({7, 42, 43, "t"}, 1000);
  call(1000, 0);
  writer_.end_call(1050);
  writer_.end_thread();
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[0], (Raw{0x40, 0xe8, 0x07, 0xd0, 0x03, 0x06, 0x50, 0x01,  // 1000, boottime
                             0xe2, 0x03, 0x0b, 0x08, 0x07,                    // track 7
                             0x22, 0x07, 0x08, 0x2a, 0x10, 0x2b, 0x2a, 0x01, 't'}));
  EXPECT_EQ(packets[1], kState);
  EXPECT_EQ(packets[2], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50,
                             0x01, 0x62, 0x07, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 'f'}));
  EXPECT_EQ(packets[3], (Raw{0x40, 0x32, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x02, 0x48, 0x02}));
}

TEST_F(PerfettoWriter, AKnownNameIsANumber) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 5);
  call(1300, 5);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[3],
            (Raw{0x40, 0xac, 0x02, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50, 0x01}));
}

TEST_F(PerfettoWriter, ALossEndsWhatIsOpenAndForgetsTheNames) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 0);
  writer_.lose(1010, 1000);  // a last time before the first is that
  EXPECT_EQ(writer_.depth(), 0u);
  call(1020, 0);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 6u);
  EXPECT_EQ(packets[3], (Raw{0x40, 0x0a, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x02, 0x48, 0x02}));
  Raw state = kState;
  const Raw dropped = {0xd0, 0x02, 0x01};  // previous packet dropped, for the first packet's field
  std::copy(dropped.begin(), dropped.end(), state.begin() + 4);
  for (size_t i = 0; i + 1 < state.size(); ++i) {
    if (state[i] == 0xe8 && state[i + 1] == 0x07) state[i] = 0xf2;  // 1010
  }
  EXPECT_EQ(packets[4], state);
  EXPECT_EQ(packets[5], (Raw{0x40, 0x0a, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50,
                             0x01, 0x62, 0x07, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 'f'}));
}

// 600 calls within each other: the 513th and what is in it are not there, and their ends neither.
TEST_F(PerfettoWriter, WhatTheImporterDropsIsFolded) {
  writer_.begin_thread({7, 42, 43, ""}, 0);
  for (uint64_t ns = 0; ns < 600; ++ns) call(ns, 0);
  EXPECT_EQ(writer_.depth(), kMaxDepth);
  for (uint64_t ns = 600; ns < 1200; ++ns) writer_.end_call(ns);
  EXPECT_EQ(writer_.depth(), 0u);
  EXPECT_EQ(writer_.folded_calls(), 88u);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 2 + 2 * 512u);
  // The innermost that is there: begun at 511, ended behind the 88 ends that are not.
  EXPECT_EQ(packets[2 + 511][1], 1);
  EXPECT_EQ(packets[2 + 512],
            (Raw{0x40, 0xb1, 0x01, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x02, 0x48, 0x02}))
      << "688 is 177 behind 511";
}

TEST_F(PerfettoWriter, TimesThatStepBackAreTheOneBefore) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(2000, 0);
  writer_.end_call(1500);
  call(2001, 0);
  EXPECT_EQ(writer_.moved_times(), 1u);
  const auto packets = finish();
  EXPECT_EQ(packets[3][1], 0);
  EXPECT_EQ(packets[4][1], 1);
}

TEST_F(PerfettoWriter, NotesHaveNamesOfTheSequence) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  const EventNotes notes = {{"x0", EventNote::Kind::kAddress, 0xff, {}},
                            {"why", EventNote::Kind::kText, 0, "no"}};
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &notes);
  writer_.end_call(1001, &notes);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  const Raw begin = {0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x13, 0x48, 0x01,
                     0x50, 0x01, 0x22, 0x05, 0x08, 0x01, 0x38, 0xff, 0x01,  // note 1: pointer 255
                     0x22, 0x06, 0x08, 0x02, 0x32, 0x02, 'n',  'o',         // note 2: "no"
                     0x62, 0x18, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 'f',   // names
                     0x1a, 0x06, 0x08, 0x01, 0x12, 0x02, 'x',  '0',  0x1a, 0x07,
                     0x08, 0x02, 0x12, 0x03, 'w',  'h',  'y'};
  EXPECT_EQ(packets[2], begin);
  EXPECT_EQ(packets[3].size(), 6 + 2 + 2 + 7 + 8u) << "and no names";
}

TEST_F(PerfettoWriter, RunsAreWholePackets) {
  writer_.begin_thread({7, 42, 43, ""}, 0);
  for (uint64_t i = 0; i < 100'000; ++i) {
    call(i, 0);
    writer_.end_call(i);
  }
  ASSERT_TRUE(writer_.finish().ok());
  ASSERT_GE(runs_.runs.size(), 8u);
  size_t packets = 0;
  for (const Raw& run : runs_.runs) {
    EXPECT_LT(run.size(), kMaxRunBytes + 100);
    packets += packets_of(run).size();
  }
  EXPECT_EQ(packets, 200'002u);
}

TEST_F(PerfettoWriter, ANameIsCutAndMadeUtf8) {
  writer_.begin_thread({7, 42, 43, ""}, 0);
  const std::string name = "a\xff" + std::string(kMaxTextBytes - 3, 'b') + "\xc3\xa9";
  writer_.begin_call(0, 0, [&] { return std::string_view(name); });
  const auto packets = finish();
  const std::string packet(packets[2].begin(), packets[2].end());
  EXPECT_NE(packet.find("a\xef\xbf\xbd" + std::string("bbb")), std::string::npos);
  EXPECT_EQ(packet.back(), 'b') << "the character that does not fit is left out whole";
}

const Raw kPlain1000 = {0x40, 0xe8, 0x07, 0xd0, 0x03, 0x06, 0x50, 0x01};  // boottime, sequence 1

Raw operator+(Raw left, const Raw& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST_F(PerfettoWriter, ProcessesTracksAndCounters) {
  ProcessTrack process;
  process.uuid = 5;
  process.pid = 42;
  process.name = "app";
  process.command_line = {"./app", "-v"};
  writer_.add_process(process, 1000);
  PlainTrack plain;
  plain.uuid = 6;
  plain.parent_uuid = 5;
  plain.name = "lost";
  plain.unit = "ev";
  writer_.add_track(plain, 1000);
  writer_.add_counter(plain, 1000);
  writer_.count(6, 1000, 300);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[0], kPlain1000 + (Raw{0xe2, 0x03, 0x16, 0x08, 0x05,  // track 5
                                          0x1a, 0x12, 0x08, 0x2a,        // process: pid 42,
                                          0x12, 0x05, '.',  '/',  'a',  'p', 'p',  // command line,
                                          0x12, 0x02, '-',  'v',                   //
                                          0x32, 0x03, 'a',  'p',  'p'}));          // name
  const Raw track = {0x08, 0x06, 0x28, 0x05, 0x12, 0x04, 'l', 'o', 's', 't'};
  EXPECT_EQ(packets[1], kPlain1000 + (Raw{0xe2, 0x03, 0x0a} + track));
  EXPECT_EQ(packets[2],
            kPlain1000 + (Raw{0xe2, 0x03, 0x10} + track + (Raw{0x42, 0x04, 0x32, 0x02, 'e', 'v'})));
  EXPECT_EQ(packets[3], kPlain1000 + (Raw{0x5a, 0x08, 0x48, 0x04, 0x58, 0x06,  // counter, track 6
                                          0xf0, 0x01, 0xac, 0x02}));           // 300
}

TEST_F(PerfettoWriter, BehindTheEndOfAThreadNothingIsOpen) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  for (size_t i = 0; i < kMaxDepth + 1; ++i) call(1000, 0);
  writer_.end_thread();
  EXPECT_EQ(writer_.depth(), 0u);
  const size_t said = 2 + kMaxDepth;
  writer_.end_call(1001);
  EXPECT_EQ(finish().size(), said);
}

TEST_F(PerfettoWriter, ANewThreadHasItsOwnCalls) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  for (size_t i = 0; i < kMaxDepth + 1; ++i) call(1000, 0);
  writer_.begin_thread({8, 42, 44, ""}, 1000);
  EXPECT_EQ(writer_.depth(), 0u);
  call(1000, 0);
  writer_.end_call(1001);
  EXPECT_EQ(writer_.depth(), 0u) << "the end is of the call, not of one that was too deep";
}

// A function that is known and has notes now: its number, and the notes.
TEST_F(PerfettoWriter, AKnownNameMayHaveNotes) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  const EventNotes notes = {{"n", EventNote::Kind::kNumber, 3, {}}};
  call(1000, 0);
  writer_.begin_call(1000, 0, [] { return std::string_view("not asked"); }, &notes);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[3],
            (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x0a, 0x48, 0x01, 0x50, 0x01, 0x22, 0x04,
                 0x08, 0x01, 0x18, 0x03, 0x62, 0x07, 0x1a, 0x05, 0x08, 0x01, 0x12, 0x01, 'n'}));
}

class FullSink final : public ByteSink {
 public:
  Status write(Bytes) override { return Error{Code::kNoSpace, "full"}; }
};

TEST(PerfettoWriterErrors, ASinkThatIsFullIsSaid) {
  FullSink full;
  Writer writer(full);
  writer.begin_thread({7, 42, 43, ""}, 0);
  EXPECT_EQ(writer.finish().code(), Code::kNoSpace);
  EXPECT_FALSE(writer.status().ok());
}

TEST_F(PerfettoWriter, SlicesAndInstantsOnPlainTracks) {
  const EventNotes notes = {{"f", EventNote::Kind::kFlag, 7, {}},
                            {"o", EventNote::Kind::kFlag, 0, {}},
                            {"n", EventNote::Kind::kNumber, 300, {}},
                            {"a", EventNote::Kind::kAddress, 0xff, {}},
                            {"t", EventNote::Kind::kText, 0, "no"}};
  writer_.slice(6, 1000, 1001, "s", notes);
  writer_.instant(6, 1000, "");
  writer_.slice(6, 1001, 1000, "z");  // ends where it begins
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 5u);
  EXPECT_EQ(packets[0],
            kPlain1000 + (Raw{0x5a, 0x2f, 0x48, 0x01, 0x58, 0x06, 0xba, 0x01, 0x01,
                              's',  0x22, 0x05, 0x52, 0x01, 'f',  0x10, 0x01,  // flags: true,
                              0x22, 0x05, 0x52, 0x01, 'o',  0x10, 0x00,        // false
                              0x22, 0x06, 0x52, 0x01, 'n',  0x18, 0xac, 0x02,  // 300
                              0x22, 0x06, 0x52, 0x01, 'a',  0x38, 0xff, 0x01,  // pointer 255
                              0x22, 0x07, 0x52, 0x01, 't',  0x32, 0x02, 'n',  'o'}));
  EXPECT_EQ(packets[1], (Raw{0x40, 0xe9, 0x07, 0xd0, 0x03, 0x06, 0x50, 0x01, 0x5a, 0x04, 0x48, 0x02,
                             0x58, 0x06}));
  EXPECT_EQ(packets[2], kPlain1000 + (Raw{0x5a, 0x04, 0x48, 0x03, 0x58, 0x06}));
  const Raw at_1001 = {0x40, 0xe9, 0x07, 0xd0, 0x03, 0x06, 0x50, 0x01};
  EXPECT_EQ(packets[3], at_1001 + (Raw{0x5a, 0x08, 0x48, 0x01, 0x58, 0x06, 0xba, 0x01, 0x01, 'z'}));
  EXPECT_EQ(packets[4], at_1001 + (Raw{0x5a, 0x04, 0x48, 0x02, 0x58, 0x06}));
}

// An event's notes beyond the limit are left out, the last that fits is there.
TEST_F(PerfettoWriter, NotesHaveALimit) {
  EventNotes notes(kMaxAnnotations + 1, {"n", EventNote::Kind::kNumber, 0, {}});
  notes[kMaxAnnotations - 1].value = 1;
  notes[kMaxAnnotations].value = 2;
  writer_.instant(6, 1000, "", notes);
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &notes);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ((Raw{packets[0].end() - 2, packets[0].end()}), (Raw{0x18, 0x01}));
  const Raw last = {0x22, 0x04, 0x08, 0x01, 0x18, 0x01};
  EXPECT_NE(std::search(packets[3].begin(), packets[3].end(), last.begin(), last.end()),
            packets[3].end());
  const Raw beyond = {0x22, 0x04, 0x08, 0x01, 0x18, 0x02};
  EXPECT_EQ(std::search(packets[3].begin(), packets[3].end(), beyond.begin(), beyond.end()),
            packets[3].end());
}

TEST_F(PerfettoWriter, ForgottenFunctionsSayTheirNamesAgain) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 0);
  writer_.forget_functions();
  writer_.begin_call(1000, 0, [] { return std::string_view("g"); });
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[3].back(), 'g');
}

TEST(PerfettoCompression, ARunIsOnePacketOfCompressedPackets) {
  ZlibPieces pieces;
  const Raw run(1000, 'x');
  Raw file = {0xee};
  append_compressed_run(pieces, file, run);
  const size_t first = file.size();
  append_compressed_run(pieces, file, run);
  EXPECT_EQ(file.front(), 0xee) << "it is appended";
  for (const Raw& one : {Raw(file.begin() + 1, file.begin() + static_cast<ptrdiff_t>(first)),
                         Raw(file.begin() + static_cast<ptrdiff_t>(first), file.end())}) {
    const auto packets = packets_of(one);
    ASSERT_EQ(packets.size(), 1u);
    ASSERT_EQ((Raw{packets[0].begin(), packets[0].begin() + 2}), (Raw{0x92, 0x03}));  // field 50
    const auto length = read_uleb128(Bytes(packets[0]).subspan(2));
    EXPECT_EQ(2 + length.size + length.value, packets[0].size());
    Raw unpacked(2000);
    uLongf size = unpacked.size();
    ASSERT_EQ(uncompress(unpacked.data(), &size, packets[0].data() + 2 + length.size, length.value),
              Z_OK);
    unpacked.resize(size);
    EXPECT_EQ(unpacked, run);
  }
}

}  // namespace
}  // namespace collect::perfetto
