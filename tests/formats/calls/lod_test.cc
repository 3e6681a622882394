// index.lod: what it says of a thread, and that nothing damaged is believed.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "formats/calls/lod/call_bars.h"
#include "formats/calls/lod/lod_reader.h"
#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"
#include "tests/formats/calls/built_lod.h"

namespace collect::calls {
namespace {

using testing::build;
using testing::BuiltLod;
using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kReturn;
using testing::MadeThread;
using testing::random_thread;

struct Seen {
  std::vector<std::string> lines;
  uint64_t events = 0;
  uint64_t lost_events = 0;
  uint64_t running_ns = 0;
  bool operator==(const Seen&) const = default;
};

Seen read_all(const MadeThread& thread, const Window& window) {
  const auto read = testing::read(thread.events, thread.gaps, thread.stalls, window);
  return {read.lines, read.counts.events, read.counts.lost_events, read.counts.running_ns};
}

Seen sought(const MadeThread& thread, const LodReader& lod, const LodSummary& summary,
            const Window& window) {
  FunctionSlots slots;
  testing::GivenCalls given(slots);
  ThreadCalls<testing::GivenCalls> calls(slots, given, thread.stalls, window);
  EXPECT_TRUE(read_window(Events(thread.events), thread.gaps, lod, summary, window, calls).ok());
  EXPECT_TRUE(given.is_balanced());
  const ThreadCounts& counts = calls.counts();
  return {given.lines, counts.events, counts.lost_events, counts.running_ns};
}

class Lod : public ::testing::TestWithParam<uint32_t> {};

// The calls in the window are the same with anything open, lost or in doubt before it.
TEST_P(Lod, WindowThatIsSoughtHasTheSameCalls) {
  const MadeThread thread = random_thread(GetParam());
  const BuiltLod built = build(thread, 4);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok()) << lod.error().message;
  const auto summary = lod->summary();
  ASSERT_TRUE(summary.ok());
  std::mt19937_64 random(GetParam());
  const uint64_t last_ns = thread.events.back().timestamp_ns;
  for (int i = 0; i < 20; ++i) {
    const uint64_t first = 1 + random() % (last_ns + 20);
    const Window window{first, first + random() % (last_ns / 2 + 1)};
    EXPECT_EQ(sought(thread, *lod, **summary, window), read_all(thread, window))
        << window.first_ns << " to " << window.last_ns;
  }
}

TEST_P(Lod, SummaryIsThatOfTheThread) {
  const MadeThread thread = random_thread(GetParam());
  const BuiltLod built = build(thread, 16);
  const auto read = LodReader::open(built.file)->summary();
  ASSERT_TRUE(read.ok()) << read.error().message;
  FunctionSlots slots;
  FunctionTotals totals;
  CallTree tree;
  Sinks sinks(totals, tree);
  ThreadCalls calls(slots, sinks, thread.stalls);
  read_thread(Events(thread.events), thread.gaps, calls);
  ASSERT_EQ((*read)->totals.times().size(), totals.times().size());
  for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
    const FunctionTimes& got = (*read)->totals.times()[slot];
    const FunctionTimes& expected = totals.times()[slot];
    EXPECT_EQ((*read)->slots.function_of(slot), slots.function_of(slot));
    EXPECT_EQ(got.calls, expected.calls);
    EXPECT_EQ(got.total_ns, expected.total_ns);
    EXPECT_EQ(got.self_ns, expected.self_ns);
    EXPECT_EQ(got.exceptions, expected.exceptions);
    EXPECT_EQ(got.skipped, expected.skipped);
    EXPECT_EQ(got.cut_by_gap, expected.cut_by_gap);
    EXPECT_EQ(got.open_at_end, expected.open_at_end);
    EXPECT_EQ(got.shortest_ns, expected.shortest_ns);
    EXPECT_EQ(got.longest_ns, expected.longest_ns);
    for (const uint32_t per_mille : {1u, 500u, 950u, 990u, 1000u}) {
      EXPECT_EQ(got.percentile(per_mille), expected.percentile(per_mille));
    }
  }
  EXPECT_EQ((*read)->counts.events, thread.events.size());
  EXPECT_EQ((*read)->counts.running_ns, calls.counts().running_ns);
  EXPECT_EQ((*read)->counts.lost_events, calls.counts().lost_events);
  uint64_t self = 0, all = 0;
  for (const PathNode& node : (*read)->paths) self += node.times.self_ns;
  for (const FunctionTimes& times : totals.times()) all += times.self_ns;
  EXPECT_EQ(self, all);
}

// Each node says how much of its time calls of each depth took, as counting it by the nanosecond.
TEST_P(Lod, CellsHaveTheTimeOfTheirDepth) {
  MadeThread thread = random_thread(GetParam());
  thread.gaps.clear();
  thread.stalls.clear();
  const BuiltLod built = build(thread, 4);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  FunctionSlots slots;
  struct Depths : CallSink {
    void on_call_end(const EndedCall& call) {
      for (uint64_t ns = call.begin.ns; ns < call.end.ns; ++ns) covered[{call.depth, ns}] = true;
    }
    std::map<std::pair<uint32_t, uint64_t>, bool> covered;
  } depths;
  ThreadCalls calls(slots, depths);
  read_thread(Events(thread.events), {}, calls);
  LodReader::Node node;
  for (size_t level = 0; level < lod->levels(); ++level) {
    for (uint64_t number = 0; number < lod->size(level); ++number) {
      ASSERT_TRUE(lod->read(level, number, node).ok());
      const uint64_t whole = node.end_ns - node.first_ns;
      if (whole == 0) continue;
      for (uint32_t depth = 0; depth < 12; ++depth) {
        uint64_t expected = 0;
        for (uint64_t ns = node.first_ns; ns < node.end_ns; ++ns) {
          expected += depths.covered.contains({depth, ns}) ? 1 : 0;
        }
        const LodCell cell = depth < node.cells.size() ? node.cells[depth] : LodCell();
        EXPECT_NEAR(cell.covered * static_cast<double>(whole) / kLodWhole,
                    static_cast<double>(expected), static_cast<double>(whole) / kLodWhole)
            << "level " << level << ", node " << number << ", depth " << depth;
        EXPECT_LE(cell.main, cell.covered);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Lod, ::testing::Range(1u, 201u));

TEST(LodFile, EveryPrefixIsRefused) {
  const BuiltLod built = build(random_thread(7), 4);
  for (size_t bytes = 0; bytes < built.file.size(); ++bytes) {
    EXPECT_FALSE(LodReader::open(Bytes(built.file).first(bytes)).ok()) << bytes;
  }
}

TEST(LodFile, EveryFlippedByteIsNoticed) {
  const MadeThread thread = random_thread(7);
  BuiltLod built = build(thread, 4);
  const auto whole = LodReader::open(built.file);
  ASSERT_TRUE(whole.ok());
  ASSERT_TRUE(whole->check().ok()) << whole->check().error().message;
  for (size_t at = 0; at < built.file.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      built.file[at] = static_cast<uint8_t>(built.file[at] ^ flip);
      const auto lod = LodReader::open(built.file);
      if (lod.ok()) {
        EXPECT_FALSE(lod->check().ok()) << at;
        // A reader of a part of it gets what is right, or an error.
        const auto leaf = lod->leaf_before(thread.events.back().timestamp_ns / 2);
        if (leaf.ok() && *leaf) {
          const auto open = lod->open_at(**leaf);
          if (open.ok()) {
            EXPECT_EQ(**leaf, **whole->leaf_before(thread.events.back().timestamp_ns / 2));
            EXPECT_EQ(*open, *whole->open_at(**leaf));
          }
        }
      }
      built.file[at] = static_cast<uint8_t>(built.file[at] ^ flip);
    }
  }
}

TEST(LodFile, AnotherVersionIsNotDamaged) {
  BuiltLod built = build(random_thread(7), 4);
  built.file[4] = kLodVersion + 1;
  store_le(built.file.data() + 124, crc32c(Bytes(built.file).first(124)));
  EXPECT_EQ(LodReader::open(built.file).code(), Code::kUnsupported);
}

TEST(LodFile, WithoutEventsThereAreNoNodes) {
  const BuiltLod built = build({}, 4);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok()) << lod.error().message;
  EXPECT_EQ(lod->levels(), 0u);
  EXPECT_TRUE(lod->check().ok());
}

TEST(LodFile, WhereTimesStepBackNothingIsSought) {
  MadeThread thread{
      {{10, kCall, 'a'}, {20, kCall, 'b'}, {15, kReturn, 'b'}, {30, kReturn, 'a'}}, {}, {}};
  const BuiltLod built = build(thread, 2);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  EXPECT_FALSE(lod->times_ascend());
  EXPECT_EQ(*lod->leaf_before(25), std::nullopt);
}

// More calls are open than can be timed: pairing cannot go on from there.
TEST(LodFile, NoLeafBeginsAmongTooDeepCalls) {
  MadeThread thread;
  constexpr uint64_t kCalls = OpenCalls::kMaxDepth + 10;
  for (uint64_t i = 0; i < kCalls; ++i) thread.events.push_back({i + 1, kCall, 'a'});
  const BuiltLod built = build(thread, kLodLeafEvents);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  EXPECT_TRUE(lod->check().ok());
  const auto leaf = lod->leaf_before(kCalls);
  ASSERT_TRUE(leaf.ok());
  ASSERT_TRUE(*leaf);
  EXPECT_LE(**leaf * kLodLeafEvents, OpenCalls::kMaxDepth);
  const auto open = lod->open_at(**leaf);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->size(), **leaf * kLodLeafEvents);
}

// LOD.md "Worked example".
TEST(LodFile, WorkedExample) {
  const MadeThread thread{
      {{1000, kCall, 0xA}, {1100, kCall, 0xB}, {1300, kReturn, 0xB}, {1400, kReturn, 0xA}}, {}, {}};
  const BuiltLod built = build(thread, 2);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  ASSERT_EQ(lod->levels(), 2u);
  LodReader::Node node;
  ASSERT_TRUE(lod->read(0, 0, node).ok());
  EXPECT_EQ(node.first_ns, 1000u);
  EXPECT_EQ(node.end_ns, 1300u);
  EXPECT_EQ(node.opened, (std::vector<uint16_t>{0, 1}));
  ASSERT_EQ(node.cells.size(), 2u);
  EXPECT_EQ(node.cells[0].covered, 65535);
  EXPECT_EQ(node.cells[1].covered, 43690);  // 200 of 300 ns
  ASSERT_TRUE(lod->read(1, 0, node).ok());
  EXPECT_EQ(node.end_ns, 1400u);
  EXPECT_EQ(node.cells[0].begun, 1u);
  EXPECT_EQ(node.cells[1].covered, 32768);
}

}  // namespace
}  // namespace collect::calls
