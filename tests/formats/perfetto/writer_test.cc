// Packets by hand, from the schema. Whole traces go through protoc and an importer by upstream's
// rules in tests/daemon/ctl/export.
#include "formats/perfetto/writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "formats/core/encoding/deflate.h"
#include "tests/formats/perfetto/writer_fixture.h"

namespace collect::perfetto {
namespace {

const Raw kState = {0x50, 0x02,                                             // sequence 2
                    0x68, 0x01,                                             // state cleared
                    0xb8, 0x05, 0x01,                                       // first packet
                    0xda, 0x03, 0x07, 0xd0, 0x03, 0x40,                     // defaults: clock 64,
                    0x5a, 0x02, 0x58, 0x07,                                 // and track 7
                    0x32, 0x10,                                             // clock snapshot
                    0x0a, 0x05, 0x08, 0x06, 0x10, 0xe8, 0x07,               // boottime: 1000
                    0x0a, 0x07, 0x08, 0x40, 0x10, 0xe8, 0x07, 0x18, 0x01};  // 64: 1000, steps

// The example of FORMAT.md, and the packets before it.
TEST_F(PerfettoWriter, CallIsTwoPackets) {
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

TEST_F(PerfettoWriter, KnownNameIsANumber) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 5);
  call(1300, 5);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[3],
            (Raw{0x40, 0xac, 0x02, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50, 0x01}));
}

TEST_F(PerfettoWriter, KnownSourceIsANumberToo) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  const auto text = [] { return FunctionText("f", "a.c", 12); };
  writer_.begin_call(1000, 5, text);
  writer_.begin_call(1300, 5, text);
  writer_.end_call(1300);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 5u);
  EXPECT_EQ(packets[2], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02,                    //
                             0x5a, 0x07, 0x48, 0x01, 0x50, 0x01, 0x90, 0x02, 0x01,  // 34: 1
                             0x62, 0x15, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 'f',   // name
                             0x22, 0x0c, 0x08, 0x01, 0x12, 0x03, 'a',  '.',  'c',   // file
                             0x1a, 0x01, 'f',  0x20, 0x0c}));                       // line
  EXPECT_EQ(packets[3], (Raw{0x40, 0xac, 0x02, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x07, 0x48, 0x01, 0x50,
                             0x01, 0x90, 0x02, 0x01}));
  EXPECT_EQ(packets[4], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x02, 0x48, 0x02}))
      << "an end has none";
}

TEST_F(PerfettoWriter, LossEndsWhatIsOpenAndForgetsTheNames) {
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
TEST_F(PerfettoWriter, FoldsCallsTheImporterWouldDrop) {
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
  writer_.end_call(2001);
  EXPECT_EQ(writer_.moved_times(), 1u) << "the same time does not step back";
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

TEST_F(PerfettoWriter, NameIsCutAndMadeUtf8) {
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

TEST_F(PerfettoWriter, NewThreadHasItsOwnCalls) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  for (size_t i = 0; i < kMaxDepth + 1; ++i) call(1000, 0);
  writer_.begin_thread({8, 42, 44, ""}, 1000);
  EXPECT_EQ(writer_.depth(), 0u);
  call(1000, 0);
  writer_.end_call(1001);
  EXPECT_EQ(writer_.depth(), 0u) << "the end is of the call, not of one that was too deep";
}

// A function that is known and has notes now: its number, and the notes.
TEST_F(PerfettoWriter, KnownNameMayHaveNotes) {
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

// A known number is none any more: the name is said again, under a new iid.
TEST_F(PerfettoWriter, FunctionsMayBeNumberedAgain) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 0);
  writer_.forget_functions();
  writer_.begin_call(1000, 0, [] { return std::string_view("g"); });
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[3], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50,
                             0x02, 0x62, 0x07, 0x12, 0x05, 0x08, 0x02, 0x12, 0x01, 'g'}));
}

// The sequences of threads are numbered from 2 on, and each says its names itself.
TEST_F(PerfettoWriter, EachThreadHasASequence) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  call(1000, 0);
  writer_.end_thread();
  writer_.begin_thread({8, 42, 44, ""}, 1000);
  call(1002, 0);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 6u);
  EXPECT_EQ(packets[3], kPlain1000 + (Raw{0xe2, 0x03, 0x08, 0x08, 0x08,  // track 8, and no name:
                                          0x22, 0x04, 0x08, 0x2a, 0x10, 0x2c}));
  EXPECT_EQ(packets[4][1], 3);
  EXPECT_EQ(packets[5], (Raw{0x40, 0x02, 0x50, 0x03, 0x68, 0x02, 0x5a, 0x04, 0x48, 0x01, 0x50,
                             0x01, 0x62, 0x07, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 'f'}));
}

// The packet of a call with the largest numbers that it may have.
TEST_F(PerfettoWriter, ShortPacketHasRoomForLargeNumbers) {
  for (int i = 0; i < 200; ++i) writer_.begin_thread({7, 42, 43, ""}, 0);
  for (uint32_t function = 0; function < 200; ++function) call(0, function);
  call(UINT64_MAX, 199);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 601u);
  EXPECT_EQ(packets.back(),
            (Raw{0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x50,
                 0xc9, 0x01, 0x68, 0x02, 0x5a, 0x05, 0x48, 0x01, 0x50, 0xc8, 0x01}));
}

// ---- losses

// The time of the state packet, which both clocks have.
uint64_t time_of_state(const Raw& state) {
  const size_t clock = state.size() - 2;  // behind it: is_incremental
  size_t at = clock;
  while (state[at - 1] != 0x10) --at;
  return read_uleb128(Bytes(state).subspan(at)).value;
}

TEST_F(PerfettoWriter, StateBehindALossHasTheLatestTime) {
  writer_.begin_thread({7, 42, 43, ""}, 10);
  call(20, 0);
  writer_.lose(30, 40);
  call(50, 0);
  writer_.lose(45, 46);  // before the call: both are the time of the call
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 8u);
  EXPECT_EQ(time_of_state(packets[1]), 10u);
  EXPECT_EQ(time_of_state(packets[4]), 40u);
  EXPECT_EQ(packets[5][1], 10) << "a step from there";
  EXPECT_EQ(packets[6][1], 0);
  EXPECT_EQ(time_of_state(packets[7]), 50u);
  EXPECT_EQ(writer_.moved_times(), 1u);
}

TEST_F(PerfettoWriter, BehindALossNothingIsTooDeep) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  for (size_t i = 0; i < kMaxDepth + 2; ++i) call(1000, 0);
  writer_.lose(1000, 1000);
  call(1000, 0);
  EXPECT_EQ(writer_.depth(), 1u);
  writer_.end_call(1001);
  EXPECT_EQ(writer_.depth(), 0u);
  EXPECT_EQ(writer_.folded_calls(), 2u);
  EXPECT_EQ(finish().size(), 2 + 2 * kMaxDepth + 1 + 2);
}

// ---- plain tracks

const Raw kSlice = {0x48, 0x01, 0x58, 0x06, 0xba, 0x01, 0x01, 's'};  // begin, track 6, "s"

TEST_F(PerfettoWriter, SliceOfAPlainTrackSaysItsNotesItself) {
  writer_.slice(6, 1000, 1300, "s",
                {{"a", EventNote::Kind::kFlag, 7, {}},
                 {"b", EventNote::Kind::kFlag, 0, {}},
                 {"n", EventNote::Kind::kNumber, 300, {}},
                 {"p", EventNote::Kind::kAddress, 255, {}},
                 {"t", EventNote::Kind::kText, 0, "no"}});
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0], kPlain1000 + (Raw{0x5a, 0x2f} + kSlice +
                                      (Raw{0x22, 0x05, 0x52, 0x01, 'a', 0x10, 0x01,        // true
                                           0x22, 0x05, 0x52, 0x01, 'b', 0x10, 0x00,        // false
                                           0x22, 0x06, 0x52, 0x01, 'n', 0x18, 0xac, 0x02,  // 300
                                           0x22, 0x06, 0x52, 0x01, 'p', 0x38, 0xff, 0x01,  // 0xff
                                           0x22, 0x07, 0x52, 0x01, 't', 0x32, 0x02, 'n',  'o'})));
  EXPECT_EQ(packets[1], (Raw{0x40, 0x94, 0x0a, 0xd0, 0x03, 0x06, 0x50, 0x01,  // 1300
                             0x5a, 0x04, 0x48, 0x02, 0x58, 0x06}));           // the end
}

TEST_F(PerfettoWriter, SliceDoesNotEndBeforeItBegins) {
  writer_.slice(6, 1000, 999, "s");
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0], kPlain1000 + (Raw{0x5a, 0x08} + kSlice));
  EXPECT_EQ(packets[1], kPlain1000 + (Raw{0x5a, 0x04, 0x48, 0x02, 0x58, 0x06}));
}

TEST_F(PerfettoWriter, MarkerIsAnInstant) {
  writer_.instant(6, 1000, "m", {{"n", EventNote::Kind::kNumber, 1, {}}});
  writer_.instant(6, 1000, "");
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0], kPlain1000 + (Raw{0x5a, 0x0f, 0x48, 0x03, 0x58, 0x06, 0xba, 0x01, 0x01, 'm',
                                          0x22, 0x05, 0x52, 0x01, 'n', 0x18, 0x01}));
  EXPECT_EQ(packets[1], kPlain1000 + (Raw{0x5a, 0x04, 0x48, 0x03, 0x58, 0x06}));
}

TEST_F(PerfettoWriter, EveryTextIsMadeUtf8) {
  ProcessTrack process;
  process.name = "1\xff";
  process.command_line = {"2\xff", "3\xff"};
  writer_.add_process(process, 0);
  writer_.add_counter({6, 5, "4\xff", "5\xff"}, 0);
  writer_.begin_thread({7, 42, 43, "6\xff"}, 0);
  writer_.instant(6, 0, "7\xff", {{"8\xff", EventNote::Kind::kText, 0, "9\xff"}});
  ASSERT_TRUE(writer_.finish().ok());
  ASSERT_EQ(runs_.runs.size(), 1u);
  for (const char digit : std::string("123456789")) {
    EXPECT_EQ(count_of(runs_.runs[0], std::string(1, digit) + "\xef\xbf\xbd"), 1u) << digit;
  }
  EXPECT_EQ(count_of(runs_.runs[0], "\xff"), 0u);
}

// ---- runs

// Markers that take exactly so many bytes.
void fill(Writer& writer, size_t bytes) {
  constexpr size_t kName = 16000;
  Runs probe;
  Writer one(probe);
  one.instant(6, 0, std::string(kName, 'x'));
  ASSERT_TRUE(one.finish().ok());
  const size_t around = probe.runs[0].size() - kName;
  while (bytes >= 2 * kName) {
    writer.instant(6, 0, std::string(kName, 'x'));
    bytes -= around + kName;
  }
  // The lengths of both take two bytes, as those of the others.
  writer.instant(6, 0, std::string(8000 - around, 'x'));
  writer.instant(6, 0, std::string(bytes - 8000 - around, 'x'));
}

TEST_F(PerfettoWriter, RunIsPassedOnWhenItIsFull) {
  fill(writer_, kMaxRunBytes - 1);
  EXPECT_TRUE(runs_.runs.empty()) << "there is room for a byte";
  ASSERT_TRUE(writer_.finish().ok());
  ASSERT_EQ(runs_.runs.size(), 1u);
  EXPECT_EQ(runs_.runs[0].size(), kMaxRunBytes - 1);

  fill(writer_, kMaxRunBytes);
  ASSERT_EQ(runs_.runs.size(), 2u);
  EXPECT_EQ(runs_.runs[1].size(), kMaxRunBytes);
  ASSERT_TRUE(writer_.finish().ok());
  EXPECT_EQ(runs_.runs.size(), 2u) << "nothing is left";
}

// Every kind of packet may be the one that fills a run.
TEST_F(PerfettoWriter, EveryKindOfPacketPassesARunOn) {
  const EventNotes notes = {{"n", EventNote::Kind::kNumber, 1, {}}};
  const std::vector<void (*)(Writer&, const EventNotes&)> kinds = {
      [](Writer& to, const EventNotes&) { to.add_process({}, 0); },
      [](Writer& to, const EventNotes&) { to.add_track({}, 0); },
      [](Writer& to, const EventNotes&) { to.count(6, 0, 1); },
      [](Writer& to, const EventNotes&) { to.begin_thread({}, 0); },
      [](Writer& to, const EventNotes&) { to.lose(0, 0); },
      [](Writer& to, const EventNotes&) { to.end_call(0); },
      [](Writer& to, const EventNotes& all) { to.end_call(0, &all); },
      [](Writer& to, const EventNotes&) { to.instant(6, 0, "m"); }};
  for (size_t i = 0; i < kinds.size(); ++i) {
    Runs runs;
    Writer writer(runs);
    writer.begin_thread({}, 0);
    writer.begin_call(0, 0, [] { return std::string_view("f"); });
    ASSERT_TRUE(writer.finish().ok());
    fill(writer, kMaxRunBytes - 1);
    ASSERT_EQ(runs.runs.size(), 1u);
    kinds[i](writer, notes);
    ASSERT_EQ(runs.runs.size(), 2u) << i;
    EXPECT_GE(runs.runs[1].size(), kMaxRunBytes) << i;
  }
}

TEST_F(PerfettoWriter, LossOfNoCallHasItsState) {
  writer_.begin_thread({7, 42, 43, ""}, 0);
  ASSERT_TRUE(writer_.finish().ok());
  fill(writer_, kMaxRunBytes - 1);
  writer_.lose(0, 0);
  EXPECT_EQ(runs_.runs.size(), 2u);
  call(1, 0);
  writer_.end_call(2);
  EXPECT_EQ(writer_.depth(), 0u);
}

// The packet of a thread's track may fill it as well: then its state is in the next.
TEST_F(PerfettoWriter, TrackOfAThreadPassesARunOn) {
  fill(writer_, kMaxRunBytes - 1);
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  ASSERT_TRUE(writer_.finish().ok());
  ASSERT_EQ(runs_.runs.size(), 2u);
  EXPECT_EQ(packets_of(runs_.runs[1]), (std::vector<Raw>{kState}));
}

TEST(PerfettoRuns, CompressedRunIsOnePacket) {
  Raw run;
  for (uint32_t i = 0; i < 4000; ++i) {
    const uint32_t mixed = i * 2654435761u;
    run.push_back(static_cast<uint8_t>(mixed >> 24));
    run.push_back(static_cast<uint8_t>(i % 7));
  }
  ZlibPieces pieces;
  Raw file = {0xaa};  // stays where it is
  append_compressed_run(pieces, file, run);
  ASSERT_EQ(file[0], 0xaa);
  const auto packets = packets_of(Raw(file.begin() + 1, file.end()));
  ASSERT_EQ(packets.size(), 1u);
  const Raw& packet = packets[0];
  ASSERT_EQ(packet[0], 0x92);  // compressed_packets
  ASSERT_EQ(packet[1], 0x03);
  const auto length = read_uleb128(Bytes(packet).subspan(2));
  ASSERT_EQ(2 + length.size + length.value, packet.size());
  Raw plain(2 * run.size());
  uLongf size = plain.size();
  ASSERT_EQ(uncompress(plain.data(), &size, packet.data() + 2 + length.size, length.value), Z_OK);
  plain.resize(size);
  EXPECT_EQ(plain, run);
}

class FullSink final : public ByteSink {
 public:
  Status write(Bytes) override {
    ++writes;
    return Error{Code::kNoSpace, "full"};
  }
  int writes = 0;
};

TEST(PerfettoWriterErrors, SinkThatIsFullIsSaid) {
  FullSink full;
  Writer writer(full);
  writer.begin_thread({7, 42, 43, ""}, 0);
  EXPECT_EQ(writer.finish().code(), Code::kNoSpace);
  EXPECT_FALSE(writer.status().ok());
}

TEST(PerfettoWriterErrors, AfterAnErrorNothingIsWritten) {
  FullSink full;
  Writer writer(full);
  for (int i = 0; i < 3; ++i) fill(writer, kMaxRunBytes);
  EXPECT_EQ(writer.status().code(), Code::kNoSpace);
  writer.instant(6, 0, "m");
  EXPECT_EQ(writer.finish().code(), Code::kNoSpace);
  EXPECT_EQ(full.writes, 1);
}

}  // namespace
}  // namespace collect::perfetto
