// Detail records: links in both directions, what they hold, filters, and pre-roll from an armed
// ring.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/page_pool.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

uint64_t function_a() {
  return reinterpret_cast<uint64_t>(&function_a);
}
uint64_t function_b() {
  return reinterpret_cast<uint64_t>(&function_b);
}

struct Detail {
  atf::DetailHeaderV2 header;
  atf::FunctionPayload payload;
  std::vector<uint8_t> stack;
};

std::vector<Detail> details(const TakenStream& stream) {
  std::vector<Detail> all;
  const std::vector<uint8_t> bytes = stream.detail.bytes();
  for (size_t at = 0; at < bytes.size();) {
    Detail detail{};
    std::memcpy(&detail.header, bytes.data() + at, atf::kDetailHeaderBytes);
    std::memcpy(&detail.payload, bytes.data() + at + atf::kDetailHeaderBytes,
                atf::kFunctionPayloadBytes);
    const uint8_t* stack = bytes.data() + at + atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes;
    detail.stack.assign(stack, stack + detail.payload.stack_size);
    EXPECT_EQ(detail.header.total_length,
              atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes + detail.payload.stack_size);
    at += detail.header.total_length;
    all.push_back(std::move(detail));
  }
  EXPECT_EQ(all.size(), stream.detail.records);
  return all;
}

HookFrame frame_at(const uint64_t* stack) {
  HookFrame frame;
  frame.call_site = 0x1234;
  frame.frame_pointer = 0x5678;
  frame.stack_pointer = reinterpret_cast<uint64_t>(stack);
  frame.valid = atf::kDetailLrValid | atf::kDetailFpValid | atf::kDetailSpValid;
  return frame;
}

void record_pairs(uint64_t count, uint64_t function, const HookFrame& frame) {
  for (uint64_t i = 0; i < count; ++i) {
    on_event(function, atf::EventKind::kCall, frame);
    on_event(function, atf::EventKind::kReturn, frame);
  }
}

class DetailTest : public testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.buffer_mb = 4;
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
  }

  alignas(4096) uint64_t stack_[512] = {11, 22, 33};
  RingDrain drain_;
};

TEST_F(DetailTest, LinksAgreeInBothDirections) {
  const HookFrame frame = frame_at(stack_);
  record_pairs(10, function_a(), frame);
  set_detail(2, 0, nullptr);
  record_pairs(500, function_a(), frame);
  set_detail(0, 0, nullptr);
  record_pairs(10, function_a(), frame);
  drain_.finish();
  const TakenStream& stream = drain_.streams.begin()->second;
  const auto events = stream.events();
  const auto records = details(stream);
  ASSERT_EQ(events.size(), 1040u);
  ASSERT_EQ(records.size(), 1000u);
  uint64_t linked = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].detail_seq == atf::kNoDetail) continue;
    ASSERT_EQ(events[i].detail_seq, linked);
    const Detail& detail = records[linked++];
    ASSERT_EQ(detail.header.index_seq, i);
    ASSERT_EQ(detail.header.timestamp_ns, events[i].timestamp_ns);
    ASSERT_EQ(detail.payload.function_id, events[i].function_id);
    ASSERT_EQ(detail.header.event_type, events[i].event_kind + 2);
  }
  EXPECT_EQ(linked, 1000u);
  // Every span says which records it holds, and of which time.
  size_t first = 0;
  ASSERT_GT(stream.detail.spans.size(), 1u);
  for (const Page& span : stream.detail.spans) {
    ASSERT_GT(span.record_count, 0u);
    EXPECT_EQ(span.lane, Lane::kDetail);
    EXPECT_EQ(span.first_seq, first);
    EXPECT_EQ(span.first_ns, records[first].header.timestamp_ns);
    first += span.record_count;
    EXPECT_EQ(span.last_ns, records[first - 1].header.timestamp_ns);
  }
  EXPECT_EQ(first, 1000u);
}

TEST_F(DetailTest, HoldsWhatTheShimKnows) {
  set_detail(2, 0, nullptr);
  record_pairs(1, function_a(), frame_at(stack_));
  record_pairs(1, function_a(), frame_at(stack_ + 500));  // 96 bytes before the memory page ends
  drain_.finish();
  const auto records = details(drain_.streams.begin()->second);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].header.flags,
            atf::kDetailLrValid | atf::kDetailFpValid | atf::kDetailSpValid);
  EXPECT_EQ(records[0].payload.lr, 0x1234u);
  EXPECT_EQ(records[0].payload.fp, 0x5678u);
  EXPECT_EQ(records[0].payload.sp, reinterpret_cast<uint64_t>(stack_));
  ASSERT_EQ(records[0].stack.size(), atf::kMaxStackBytes);
  EXPECT_EQ(load_le<uint64_t>(records[0].stack.data() + 16), 33u);
  EXPECT_EQ(records[2].stack.size(), 96u);
}

// Only the registers that the shim says it has; the others' values are no one's.
TEST_F(DetailTest, HoldsTheRegistersThatAreValid) {
  const uint64_t registers[8] = {10, 11, 12, 13, 14, 15, 16, 17};
  set_detail(2, 0, nullptr);
  HookFrame frame = frame_at(stack_);
  frame.registers = registers;
  for (int n = 0; n < 8; ++n) {
    frame.valid = static_cast<uint16_t>(atf::kDetailX0Valid << n);
    on_event(function_a(), atf::EventKind::kCall, frame);
  }
  frame.valid = 0;
  on_event(function_a(), atf::EventKind::kReturn, frame);
  drain_.finish();
  const auto records = details(drain_.streams.begin()->second);
  ASSERT_EQ(records.size(), 9u);
  for (size_t i = 0; i < records.size(); ++i) {
    for (size_t n = 0; n < 8; ++n) {
      EXPECT_EQ(records[i].payload.x_regs[n], n == i ? registers[n] : 0) << i << " x" << n;
    }
    EXPECT_EQ(records[i].header.index_seq, i);
    const auto type = i < 8 ? atf::DetailType::kFunctionCall : atf::DetailType::kFunctionReturn;
    EXPECT_EQ(records[i].header.event_type, static_cast<uint16_t>(type));
    EXPECT_EQ(records[i].payload.function_id, function_a() - module_at(0).base_address);
  }
}

// With any alignment of the stack pointer: exactly the bytes that are certain to be there.
TEST_F(DetailTest, HoldsTheStackToTheLastByte) {
  auto* const bytes = reinterpret_cast<uint8_t*>(stack_);
  for (size_t i = 0; i < sizeof stack_; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  set_detail(2, 0, nullptr);
  for (size_t left = 1; left <= 20; ++left) {
    HookFrame frame = frame_at(stack_);
    frame.stack_pointer = reinterpret_cast<uint64_t>(bytes + sizeof stack_ - left);
    on_event(function_a(), atf::EventKind::kCall, frame);
  }
  HookFrame unknown = frame_at(stack_);
  unknown.stack_pointer = 0;
  on_event(function_a(), atf::EventKind::kCall, unknown);
  drain_.finish();
  const auto records = details(drain_.streams.begin()->second);
  ASSERT_EQ(records.size(), 21u);
  for (size_t left = 1; left <= 20; ++left) {
    EXPECT_EQ(records[left - 1].stack,
              std::vector<uint8_t>(bytes + sizeof stack_ - left, bytes + sizeof stack_));
  }
  EXPECT_TRUE(records[20].stack.empty());
}

TEST_F(DetailTest, FiltersByFunctionAndThread) {
  DetailFilter filter;
  filter.function_count = 2;
  filter.function_ids[0] = UINT64_MAX;
  filter.function_ids[1] = function_b() - module_at(0).base_address;
  const HookFrame frame = frame_at(stack_);
  set_detail(2, 0, &filter);
  record_pairs(5, function_a(), frame);
  record_pairs(3, function_b(), frame);
  filter.function_count = 0;
  filter.thread_count = 1;
  filter.thread_ids[0] = 1;  // not one of ours
  set_detail(2, 0, &filter);
  record_pairs(5, function_b(), frame);
  drain_.finish();
  const auto records = details(drain_.streams.begin()->second);
  ASSERT_EQ(records.size(), 6u);
  for (const Detail& detail : records) {
    EXPECT_EQ(detail.payload.function_id, filter.function_ids[1] == UINT64_MAX
                                              ? filter.function_ids[0]
                                              : function_b() - module_at(0).base_address);
  }
}

TEST_F(DetailTest, PreRollComesFromTheArmedRing) {
  const HookFrame frame = frame_at(stack_);
  set_detail(1, 0, nullptr);
  record_pairs(100, function_a(), frame);
  drain_.take();
  EXPECT_EQ(drain_.streams.begin()->second.detail.records, 0u);  // armed: nothing is shipped
  // The pre-roll begins in a pause, so that it is the same wherever this thread is held up.
  constexpr uint64_t kPauseNs = 400'000'000;
  std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
  const uint64_t cut_begin = now_ns();
  record_pairs(50, function_b(), frame);
  const DetailChange change = set_detail(2, now_ns() - cut_begin + kPauseNs * 3 / 4, nullptr);
  record_pairs(20, function_a(), frame);
  drain_.finish();
  EXPECT_GE(change.pre_roll_records, 50u);
  EXPECT_LT(change.pre_roll_records, 200u);
  const TakenStream& stream = drain_.streams.begin()->second;
  const auto events = stream.events();
  const auto records = details(stream);
  ASSERT_EQ(records.size(), change.pre_roll_records + 40);
  EXPECT_EQ(records.front().header.timestamp_ns, change.pre_roll_from_ns);
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& event = events.at(records[i].header.index_seq);
    EXPECT_EQ(event.timestamp_ns, records[i].header.timestamp_ns);
    // The forward link of pre-roll is the collector's to set.
    EXPECT_EQ(event.detail_seq, i < change.pre_roll_records ? atf::kNoDetail : i);
  }
  for (const Page& span : stream.detail.spans) {
    EXPECT_EQ((span.flags & kPagePreRoll) != 0, span.first_seq < change.pre_roll_records);
  }
}

TEST_F(DetailTest, ArmedRingKeepsTheNewestWithinItsShare) {
  const HookFrame frame = frame_at(stack_);
  set_detail(1, 0, nullptr);
  record_pairs(20000, function_a(), frame);
  drain_.take();
  const DetailChange change = set_detail(2, UINT64_MAX, nullptr);
  drain_.finish();
  EXPECT_GT(change.pre_roll_records, 1000u);
  EXPECT_LT(change.pre_roll_records, 40000u);
  const TakenStream& stream = drain_.streams.begin()->second;
  EXPECT_EQ(stream.detail.records, change.pre_roll_records);
  EXPECT_EQ(details(stream).back().header.index_seq, 39999u);
  EXPECT_EQ(stream.detail.lost_total, 0u);  // nothing was promised
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

// Pages that were armed are no one's share any more when they were dropped, or shipped.
TEST_F(DetailTest, ShareOfArmedPagesComesBack) {
  const HookFrame frame = frame_at(stack_);
  for (int round = 0; round < 12; ++round) {
    set_detail(1, 0, nullptr);
    record_pairs(2000, function_a(), frame);
    drain_.take();
    const bool ships = round % 3 == 0;
    const DetailChange change = set_detail(ships ? 2 : 0, ships ? UINT64_MAX : 0, nullptr);
    if (ships) {
      EXPECT_GT(change.pre_roll_records, 1000u) << round;
    } else {
      EXPECT_EQ(change.pre_roll_records, 0u) << round;
    }
    drain_.take();
  }
  // The first records are too old, and their pages go back without being shipped.
  set_detail(1, 0, nullptr);
  for (int round = 0; round < 12; ++round) {
    record_pairs(2000, function_a(), frame);
    drain_.take();
    EXPECT_EQ(set_detail(2, 1, nullptr).pre_roll_records, 0u);
    set_detail(1, 0, nullptr);
  }
  record_pairs(2000, function_a(), frame);
  EXPECT_GT(set_detail(2, UINT64_MAX, nullptr).pre_roll_records, 1000u);
  drain_.finish();
}

TEST_F(DetailTest, IndexEventsComeFirstWhenRoomIsShort) {
  set_detail(2, 0, nullptr);
  record_pairs(20000, function_a(), frame_at(stack_));
  const RecorderStats stats = recorder_stats();
  EXPECT_GT(stats.detail_lost, 0u);
  EXPECT_EQ(stats.recorded + stats.lost, 40000u);
  EXPECT_EQ(stats.lost, 0u);
  EXPECT_EQ(stats.detail_recorded + stats.detail_lost, 40000u);
  drain_.finish();
  // Events whose detail was lost carry no link, so the links are still 0, 1, 2, …
  const TakenStream& stream = drain_.streams.begin()->second;
  uint64_t linked = 0;
  for (const auto& event : stream.events()) {
    if (event.detail_seq != atf::kNoDetail) {
      ASSERT_EQ(event.detail_seq, linked++);
    }
  }
  EXPECT_EQ(linked, stream.detail.records);
}

TEST_F(DetailTest, RecordAfterALossBeginsANewPage) {
  set_detail(2, 0, nullptr);
  record_pairs(3, function_a(), frame_at(stack_));
  count_lost(stream_at(0)->lane(Lane::kDetail), kLostReentry, 77);
  record_pairs(1, function_a(), frame_at(stack_));
  drain_.finish();
  const TakenLane& lane = drain_.streams.begin()->second.detail;
  ASSERT_EQ(lane.spans.size(), 2u);
  EXPECT_EQ(lane.spans[0].lost_total, 0u);
  EXPECT_EQ(lane.spans[1].first_seq, 6u);
  EXPECT_EQ(lane.spans[1].lost_total, 1u);
  EXPECT_EQ(lane.spans[1].lost_reasons, kLostReentry);
  EXPECT_EQ(lane.spans[1].lost_first_ns, 77u);
}

// What a thread leaves that was killed between a detail record and its index event, or in the
// middle of counting a record.
TEST_F(DetailTest, RecordWithoutItsIndexEventIsLeftOut) {
  set_detail(2, 0, nullptr);
  record_pairs(3, function_a(), frame_at(stack_));
  Stream& stream = *stream_at(0);
  page_info(stream.lane(Lane::kIndex).open).committed.fetch_sub(atf::kEventBytes);
  page_info(stream.lane(Lane::kDetail).open).records.fetch_sub(1);
  settle_dead_writers();
  drain_.finish();
  const TakenStream& taken = drain_.streams.begin()->second;
  ASSERT_EQ(taken.events().size(), 5u);
  const auto records = details(taken);
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records.back().header.index_seq, 4u);
  EXPECT_EQ(taken.events().back().detail_seq, 4u);
}

TEST(DetailWait, HoldsTheProgramAndLosesNothing) {
  constexpr uint64_t kPairs = 20000;
  Settings settings;
  settings.buffer_mb = 4;
  settings.full = FullPolicy::kWait;
  ASSERT_TRUE(recorder_init(settings));
  allow_waiting(true);
  start_recording();
  set_detail(2, 0, nullptr);
  std::atomic<bool> done{false};
  std::thread program([&] {
    alignas(4096) uint64_t stack[512] = {};
    record_pairs(kPairs, function_a(), frame_at(stack));
    done = true;
  });
  RingDrain drain;
  while (!done.load()) drain.take();
  program.join();
  drain.finish();
  EXPECT_EQ(drain.lost(), 0u);
  ASSERT_EQ(drain.streams.size(), 1u);
  const TakenStream& stream = drain.streams.begin()->second;
  EXPECT_EQ(stream.detail.lost_total, 0u);
  EXPECT_EQ(stream.index.records, 2 * kPairs);
  EXPECT_EQ(details(stream).size(), 2 * kPairs);
}

TEST(DetailWait, CountsTheLossWhenWaitingIsNotAllowed) {
  Settings settings;
  settings.buffer_mb = 4;
  settings.full = FullPolicy::kWait;
  ASSERT_TRUE(recorder_init(settings));
  allow_waiting(false);
  start_recording();
  set_detail(2, 0, nullptr);
  alignas(4096) uint64_t stack[512] = {};
  record_pairs(10000, function_a(), frame_at(stack));
  const RecorderStats stats = recorder_stats();
  EXPECT_GT(stats.detail_lost, 0u);
  EXPECT_EQ(stats.detail_recorded + stats.detail_lost, 20000u);
  EXPECT_EQ(stats.recorded + stats.lost, 20000u);
  RingDrain drain;
  drain.finish();
}

TEST_F(DetailTest, ChangesWhileThreadsRecord) {
  constexpr int kChanges = 60;
  constexpr int kTurnsOfAChange = 20;  // at most: full rings of detail take seconds to copy
  std::atomic<int> changes{0};
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      alignas(4096) uint64_t stack[512] = {};
      const HookFrame frame = frame_at(stack);
      for (int turn = 0; changes.load() < kChanges;) {
        if (turn > kTurnsOfAChange * changes.load()) {
          std::this_thread::yield();
          continue;
        }
        record_pairs(10, function_a(), frame);
        ++turn;
        ++turns;
      }
    });
  }
  for (int i = 0; i < kChanges; ++i) {
    set_detail(static_cast<uint32_t>(i % 3), i % 3 == 2 ? 1000000 : 0, nullptr);
    drain_.take();
    while (turns.load() <= i) std::this_thread::yield();
    ++changes;
  }
  for (auto& thread : threads) thread.join();
  drain_.finish();
  for (const auto& [id, stream] : drain_.streams) {
    const auto events = stream.events();
    const auto records = details(stream);
    for (size_t i = 0; i < records.size(); ++i) {
      const auto& event = events.at(records[i].header.index_seq);
      ASSERT_EQ(event.timestamp_ns, records[i].header.timestamp_ns);
      ASSERT_TRUE(event.detail_seq == i || event.detail_seq == atf::kNoDetail);
    }
  }
}

}  // namespace
}  // namespace collect::agent
