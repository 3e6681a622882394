// The recorder with real threads and a drain of the test's: nothing lost that is not counted,
// nothing out of order, numbers without holes.
#include "agent/ring/recorder.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/modules.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

constexpr uint32_t kEventsPerPage = kPageBytes / atf::kEventBytes;

// Two addresses inside this program, so that they belong to module 0.
uint64_t function_a() {
  return reinterpret_cast<uint64_t>(&function_a);
}
uint64_t function_b() {
  return reinterpret_cast<uint64_t>(&function_b);
}

Settings settings_with(FullPolicy full, uint32_t buffer_mb = 1, uint8_t version = 2) {
  Settings settings;
  settings.full = full;
  settings.buffer_mb = buffer_mb;
  settings.atf_version = version;
  return settings;
}

void record_pairs(uint64_t count, uint64_t function = function_a()) {
  const HookFrame frame;
  for (uint64_t i = 0; i < count; ++i) {
    on_event(function, atf::EventKind::kCall, frame);
    on_event(function, atf::EventKind::kReturn, frame);
  }
}

void expect_sound(const TakenStream& stream) {
  uint64_t last = 0;
  for (const atf::IndexEventV2& event : stream.events()) {
    ASSERT_GE(event.timestamp_ns, last);
    ASSERT_GE(event.event_kind, 1);
    ASSERT_LE(event.event_kind, 3);
    last = event.timestamp_ns;
  }
}

TEST(Recorder, IdleRecordsNothing) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  record_pairs(10);
  EXPECT_EQ(stream_slots(), 0u);
}

TEST(Recorder, KeepsEveryEventOfEveryThreadInOrder) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kWait, 2)));
  EXPECT_EQ(start_recording(), 1u);
  RingDrain drain;
  drain.drain_while([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { record_pairs(100000); });
    for (auto& thread : threads) thread.join();
  });
  EXPECT_EQ(drain.streams.size(), 4u);
  EXPECT_EQ(drain.records(), 800000u);
  EXPECT_EQ(drain.lost(), 0u);
  for (const auto& [id, stream] : drain.streams) {
    expect_sound(stream);
    const auto events = stream.events();
    ASSERT_EQ(events.size(), 200000u);
    for (size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].event_kind, i % 2 + 1);
      ASSERT_EQ(events[i].function_id, function_a() - module_at(0).base_address);
      ASSERT_EQ(events[i].detail_seq, atf::kNoDetail);
    }
  }
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

TEST(Recorder, DropCountsEveryLostEventAndSaysWhere) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  start_recording();
  constexpr uint64_t kRoom = 16 * kEventsPerPage;  // 1 MiB
  record_pairs(kRoom);                             // twice what fits
  RingDrain drain;
  drain.take();
  EXPECT_EQ(drain.records(), kRoom);
  EXPECT_EQ(drain.lost(), kRoom);
  record_pairs(5);
  drain.take();
  ASSERT_EQ(drain.streams.size(), 1u);
  const TakenStream& stream = drain.streams.begin()->second;
  EXPECT_EQ(stream.index.skipped, 0u);  // dropped events have no numbers
  const Page& after = stream.index.spans.back();
  EXPECT_EQ(after.first_seq, kRoom);
  EXPECT_EQ(after.lost_total, kRoom);
  EXPECT_EQ(after.lost_reasons, kLostRingFull);
  EXPECT_GT(after.lost_first_ns, 0u);
  EXPECT_LE(after.lost_first_ns, after.lost_last_ns);
  EXPECT_LE(after.lost_last_ns, after.first_ns);
  drain.finish();
  EXPECT_EQ(drain.records() + drain.lost(), 2 * kRoom + 10);
}

bool is_resident(PageRef page) {
  const auto memory_page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there(kPageBytes / memory_page);
  EXPECT_EQ(mincore(page_bytes(page), kPageBytes, there.data()), 0);
  return std::all_of(there.begin(), there.end(), [](unsigned char one) { return one & 1; });
}

// qemu's emulation of a process takes the request and does nothing.
bool system_populates() {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char there = 0;
  const bool populates = page != MAP_FAILED && madvise(page, bytes, MADV_POPULATE_WRITE) == 0 &&
                         mincore(page, bytes, &there) == 0 && (there & 1) != 0;
  munmap(page, bytes);
  return populates;
}

TEST(Recorder, PagesAreThereBeforeThreadsNeedThem) {
  if (!system_populates()) GTEST_SKIP() << "no page is faulted in by madvise here";
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop, 8)));
  prepare_pages();
  EXPECT_FALSE(is_resident(1)) << "nothing is recorded, so nothing is taken";
  start_recording();
  record_pairs(2 * kEventsPerPage);  // four pages
  const uint64_t used = recorder_stats().buffer_used;
  EXPECT_EQ(used, 4 * kPageBytes);
  EXPECT_FALSE(is_resident(5));
  prepare_pages();
  for (PageRef page = 1; page <= 8; ++page) EXPECT_TRUE(is_resident(page)) << page;
  EXPECT_FALSE(is_resident(9)) << "no more than are in use";
  EXPECT_EQ(recorder_stats().buffer_used, used);
  record_pairs(50 * kEventsPerPage);  // 104 pages of 128
  prepare_pages();
  EXPECT_TRUE(is_resident(128));
  record_pairs(20 * kEventsPerPage);  // more than fits
  prepare_pages();
  RingDrain drain;
  drain.take();
  EXPECT_EQ(drain.records(), 128 * kEventsPerPage);
  EXPECT_EQ(drain.records() + drain.lost(), 144 * kEventsPerPage);
  drain.finish();
}

TEST(Recorder, OverwriteKeepsTheNewestAndNumbersTheHole) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kOverwrite)));
  start_recording();
  constexpr uint64_t kEvents = 40 * kEventsPerPage;
  record_pairs(kEvents / 2);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records() + drain.lost(), kEvents);
  const TakenStream& stream = drain.streams.begin()->second;
  EXPECT_EQ(stream.index.records, 16u * kEventsPerPage);
  EXPECT_EQ(stream.index.skipped, kEvents - stream.index.records);
  EXPECT_EQ(stream.index.lost_total, 0u);
  const Page& first = stream.index.spans.front();
  EXPECT_EQ(first.first_seq, stream.index.skipped);
  EXPECT_EQ(first.lost_reasons, kLostOverwritten);
  EXPECT_LE(first.lost_first_ns, first.lost_last_ns);
  EXPECT_LE(first.lost_last_ns, first.first_ns);
}

TEST(Recorder, OverwriteLeavesPagesAloneThatAreBeingSent) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kOverwrite)));
  start_recording();
  record_pairs(kEventsPerPage * 2);  // four pages
  Stream* stream = stream_at(0);
  ASSERT_NE(stream, nullptr);
  Page held{};
  ASSERT_TRUE(next_span(*stream, Lane::kIndex, 1u << 20, true, held));
  const std::vector<uint8_t> before(held.bytes.begin(), held.bytes.end());
  mark_sent(*stream, Lane::kIndex, held);
  record_pairs(kEventsPerPage * 40);
  EXPECT_EQ(std::memcmp(before.data(), held.bytes.data(), before.size()), 0);
  RingDrain drain;
  rewind(*stream, Lane::kIndex, 0);
  drain.finish();
  EXPECT_EQ(drain.records() + drain.lost(), kEventsPerPage * 84u);
}

TEST(Recorder, WaitGivesUpWhenWaitingIsNotAllowed) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kWait)));
  start_recording();
  allow_waiting(false);
  record_pairs(16 * kEventsPerPage);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records(), 16u * kEventsPerPage);
  EXPECT_EQ(drain.records() + drain.lost(), 32u * kEventsPerPage);
}

TEST(Recorder, UnacknowledgedRecordsAreSentAgainFromAnyPosition) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  start_recording();
  record_pairs(kEventsPerPage * 2 + 7);
  RingDrain first;
  first.take(false);
  const std::vector<uint8_t> all = first.streams.begin()->second.index.bytes();
  const uint64_t records = all.size() / atf::kEventBytes;
  Stream* stream = stream_at(0);
  for (const uint64_t from : {uint64_t{0}, uint64_t{1}, uint64_t{kEventsPerPage - 1},
                              uint64_t{kEventsPerPage}, uint64_t{kEventsPerPage + 1}, records}) {
    rewind(*stream, Lane::kIndex, from);
    std::vector<uint8_t> again;
    Page span;
    uint64_t expected = from;
    while (next_span(*stream, Lane::kIndex, 5000, true, span)) {
      EXPECT_EQ(span.first_seq, expected);
      EXPECT_LE(span.raw_bytes, 5000u);
      expected += span.record_count;
      again.insert(again.end(), span.bytes.begin(), span.bytes.end());
      mark_sent(*stream, Lane::kIndex, span);
    }
    EXPECT_EQ(again, std::vector<uint8_t>(all.begin() + static_cast<long>(from * 32), all.end()));
  }
  acknowledge(*stream, Lane::kIndex, records);
  EXPECT_TRUE(all_acknowledged(*stream));
  RingDrain rest;
  stop_recording();
  EXPECT_TRUE(stream_ended(*stream));
  release_stream(*stream);
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

TEST(Recorder, ReleasesSetAsidePagesWithoutSendingThem) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  start_recording();
  record_pairs(kEventsPerPage * 2 + 7);
  RingDrain first;
  first.take(false);
  const std::vector<uint8_t> all = first.streams.begin()->second.index.bytes();
  Stream& stream = *stream_at(0);
  const auto expect_span = [&all](const Page& span, uint64_t first_seq, uint64_t records) {
    ASSERT_EQ(std::make_pair(span.first_seq, uint64_t{span.record_count}),
              std::make_pair(first_seq, records));
    EXPECT_EQ(std::memcmp(span.bytes.data(), all.data() + first_seq * 32, records * 32), 0);
  };
  const uint64_t full = recorder_stats().buffer_used;
  rewind(stream, Lane::kIndex, 0);
  Page span;
  for (const uint32_t bytes : {kPageBytes, 3200u}) {  // the first page, some of the second
    ASSERT_TRUE(next_span(stream, Lane::kIndex, bytes, false, span));
    mark_sent(stream, Lane::kIndex, span);
  }
  ASSERT_TRUE(oldest_span(stream, Lane::kIndex, 0, false, span));
  expect_span(span, 0, kEventsPerPage);
  set_aside(stream, Lane::kIndex, kEventsPerPage);
  EXPECT_EQ(recorder_stats().buffer_used, full - kPageBytes);
  ASSERT_TRUE(next_span(stream, Lane::kIndex, 3200, false, span));
  expect_span(span, kEventsPerPage + 100, 100);
  set_aside(stream, Lane::kIndex, 2 * kEventsPerPage);
  ASSERT_TRUE(next_span(stream, Lane::kIndex, kPageBytes, false, span));
  expect_span(span, 2 * kEventsPerPage, kEventsPerPage);
  ASSERT_TRUE(oldest_span(stream, Lane::kIndex, 4 * kEventsPerPage, true, span));
  expect_span(span, 4 * kEventsPerPage, 14);
  stop_recording();
  release_stream(stream);
}

TEST(Recorder, VersionOneEventsCarryThreadAndDepth) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop, 1, 1)));
  start_recording();
  const HookFrame frame;
  on_event(function_a(), atf::EventKind::kCall, frame);
  on_event(function_b(), atf::EventKind::kCall, frame);
  on_event(function_b(), atf::EventKind::kReturn, frame);
  on_event(function_a(), atf::EventKind::kException, frame);
  RingDrain drain;
  drain.finish();
  const TakenStream& stream = drain.streams.begin()->second;
  const auto events = stream.events<atf::IndexEventV1>();
  ASSERT_EQ(events.size(), 4u);
  const uint32_t depths[] = {1, 2, 2, 1};
  const uint32_t kinds[] = {1, 1, 2, 3};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].call_depth, depths[i]);
    EXPECT_EQ(events[i].event_kind, kinds[i]);
    EXPECT_EQ(events[i].thread_id, stream.thread_id);
    EXPECT_EQ(events[i].detail_seq, atf::kNoDetailV1);
  }
}

TEST(Recorder, RecordingsFollowEachOtherWithStreamsOfTheirOwn) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  for (uint32_t recording = 1; recording <= 3; ++recording) {
    EXPECT_EQ(start_recording(), recording);
    record_pairs(recording * 10);
    RingDrain drain;
    drain.finish();
    ASSERT_EQ(drain.streams.size(), 1u);
    EXPECT_EQ(drain.streams.begin()->second.recording, recording);
    EXPECT_EQ(drain.records(), recording * 20);
    EXPECT_EQ(recorder_stats().recorded, recording * 20) << "of this recording alone";
    EXPECT_EQ(drain.streams.begin()->second.index.spans.front().first_seq, 0u);
    record_pairs(100);  // between recordings: not recorded
  }
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

// The slot of a stream of the recording before was given to another thread, and both wrote to it.
TEST(Recorder, ReturningThreadDoesNotWriteToAnotherThreadsStream) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  std::atomic<uint32_t> step{0};
  const auto wait_for = [&](uint32_t wanted) {
    while (step.load() != wanted) std::this_thread::yield();
  };
  start_recording();
  std::thread other([&] {
    record_pairs(3);
    step = 1;
    wait_for(2);
    record_pairs(5);
    step = 3;
  });
  wait_for(1);
  RingDrain().finish();
  start_recording();
  record_pairs(7);
  step = 2;
  wait_for(3);
  RingDrain drain;
  drain.finish();
  other.join();
  ASSERT_EQ(drain.streams.size(), 2u);
  EXPECT_EQ(drain.streams.begin()->second.index.records, 14u);
  EXPECT_EQ(drain.streams.rbegin()->second.index.records, 10u);
  EXPECT_NE(drain.streams.begin()->second.thread_id, drain.streams.rbegin()->second.thread_id);
}

// Stops a thread wherever it is, until `go_on`.
std::atomic<bool> is_held{false};
std::atomic<bool> go_on{false};
void hold(int) {
  is_held = true;
  while (!go_on.load()) sched_yield();
}

// The stream that it waited with was given back while it waited.
TEST(Recorder, WaitingThreadContinuesInTheNextRecording) {
  constexpr uint64_t kRoom = 16 * kEventsPerPage;  // 1 MiB
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kWait)));
  is_held = go_on = false;
  struct sigaction action{};
  action.sa_handler = hold;
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  start_recording();
  std::atomic<bool> done{false};
  std::thread program([&] {
    record_pairs(kRoom);  // twice what fits
    done = true;
  });
  while (stream_at(0) == nullptr || stream_at(0)->waiting.load() == 0) {
    if (done.load()) {
      program.join();
      FAIL() << "the ring never filled: " << recorder_stats().recorded << " recorded, "
             << recorder_stats().lost << " lost, of " << 2 * kRoom;
    }
    std::this_thread::yield();
  }
  // Again and again: TSan keeps a signal back that comes between two calls, sometimes for good.
  while (!is_held.load()) {
    pthread_kill(program.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  RingDrain first;
  first.finish();
  EXPECT_EQ(first.records(), kRoom);
  EXPECT_EQ(first.lost(), 0u);
  start_recording();
  go_on = true;
  RingDrain second;
  while (!done.load()) second.take();
  program.join();
  second.finish();
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_EQ(second.streams.size(), 1u);
  EXPECT_EQ(second.streams.begin()->second.recording, 2u);
  EXPECT_EQ(second.streams.begin()->second.index.spans.front().first_seq, 0u);
  // The call or return that waited belongs to a recording that is over.
  EXPECT_EQ(second.records(), kRoom - 1);
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

TEST(Recorder, PageStaysUntilItsLastRecordIsAcknowledged) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  start_recording();
  record_pairs(kEventsPerPage / 2 + 1);  // a page and two events
  RingDrain first;
  first.take(false);
  Stream& stream = *stream_at(0);
  acknowledge(stream, Lane::kIndex, kEventsPerPage - 1);
  rewind(stream, Lane::kIndex, kEventsPerPage - 1);
  Page span;
  ASSERT_TRUE(next_span(stream, Lane::kIndex, 1u << 20, true, span));
  EXPECT_EQ(span.first_seq, kEventsPerPage - 1);
  EXPECT_EQ(span.record_count, 1u);
  mark_sent(stream, Lane::kIndex, span);
  acknowledge(stream, Lane::kIndex, kEventsPerPage);
  rewind(stream, Lane::kIndex, kEventsPerPage);
  ASSERT_TRUE(next_span(stream, Lane::kIndex, 1u << 20, true, span));
  EXPECT_EQ(span.first_seq, kEventsPerPage);
  mark_sent(stream, Lane::kIndex, span);
  acknowledge(stream, Lane::kIndex, kEventsPerPage + 2);
  stop_recording();
  EXPECT_TRUE(stream_ended(stream));
  release_stream(stream);
  EXPECT_EQ(recorder_stats().buffer_used, 0u);
}

TEST(Recorder, EndedThreadsAreFoundAndTheirSlotsUsedAgain) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kWait, 1)));
  start_recording();
  RingDrain drain;
  std::set<uint32_t> seen;
  for (int i = 0; i < 300; ++i) {
    std::thread([] { record_pairs(3); }).join();
    drain.take();
    poll_threads();
    for (uint32_t slot = 0; slot < stream_slots(); ++slot) {
      Stream* stream = stream_at(slot);
      if (stream == nullptr || !stream_ended(*stream)) continue;
      StreamInfo info{};
      stream_info(*stream, info);
      EXPECT_TRUE(seen.insert(info.stream_id).second);
      EXPECT_GE(stream_end_ns(*stream), info.start_ns);
      drain.take();
      release_stream(*stream);
    }
  }
  drain.finish();
  EXPECT_EQ(drain.streams.size(), 300u);
  EXPECT_EQ(drain.records(), 1800u);
  EXPECT_EQ(drain.lost(), 0u);
  EXPECT_LT(stream_slots(), 10u);
  EXPECT_EQ(recorder_stats().recorded, 1800u);
}

// Slots that several threads gave back are all found again, in any order.
TEST(Recorder, EverySlotOfSeveralEndedThreadsIsUsedAgain) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop, 2)));
  RingDrain drain;
  constexpr uint32_t kThreads = 5;
  for (uint32_t recording = 1; recording <= 4; ++recording) {
    start_recording();
    // All at once, so that each has a slot of its own.
    std::atomic<uint32_t> recorded{0};
    pid_t ids[kThreads];
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ids[i] = gettid();
        record_pairs(3);
        ++recorded;
        while (recorded.load() < kThreads) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // The system lists a thread for a moment after its end was heard of.
    for (const pid_t id : ids) {
      const std::string listed = "/proc/self/task/" + std::to_string(id);
      while (::access(listed.c_str(), F_OK) == 0) std::this_thread::yield();
    }
    EXPECT_EQ(stream_slots(), kThreads) << recording;
    drain.finish();
    poll_threads();  // what the ended threads held is given back too
  }
  EXPECT_EQ(drain.streams.size(), 4 * kThreads);
  EXPECT_EQ(drain.records(), 4 * kThreads * 6u);
  EXPECT_EQ(drain.lost(), 0u);
}

TEST(Recorder, ThreadOfTheAgentsOwnIsNotRecorded) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  start_recording();
  std::thread([] {
    ignore_this_thread();
    record_pairs(3);
  }).join();
  EXPECT_EQ(stream_slots(), 0u);
  EXPECT_EQ(lost_without_stream(), 0u);
  std::thread([] { record_pairs(3); }).join();
  EXPECT_EQ(stream_slots(), 1u);
  RingDrain drain;
  poll_threads();
  drain.finish();
  EXPECT_EQ(drain.records(), 6u);
}

std::atomic<uint64_t> in_handler{0};
void handler(int) {
  record_pairs(1, function_b());
  in_handler.fetch_add(2);
}

TEST(Recorder, SignalHandlersAreRecordedOrCounted) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kWait, 4)));
  start_recording();
  RingDrain drain;
  std::atomic<bool> done{false};
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::thread drainer([&] {
    ignore_this_thread();
    while (!done.load()) drain.take();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  struct sigaction action{};
  action.sa_handler = handler;
  struct sigaction old{};
  sigaction(SIGALRM, &action, &old);
  in_handler = 0;
  const itimerval timer{{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  uint64_t pairs = 0;
  while (in_handler.load() < 4000) {
    record_pairs(1000);
    pairs += 1000;
  }
  const itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  sigaction(SIGALRM, &old, nullptr);
  done = true;
  drainer.join();
  drain.finish();
  // A handler may also come while the thread gets its stream.
  const uint64_t elsewhere = recorder_stats().lost_without_stream;
  EXPECT_EQ(drain.records() + drain.lost() + elsewhere, pairs * 2 + in_handler.load());
  for (const auto& [id, stream] : drain.streams) expect_sound(stream);
}

TEST(Modules, AddressesBelongToTheirObjects) {
  ASSERT_TRUE(recorder_init(settings_with(FullPolicy::kDrop)));
  ModuleRange range;
  ASSERT_TRUE(module_find(function_a(), range));
  EXPECT_EQ(range.module_id, 0u);
  EXPECT_GT(module_at(0).build_id_bytes, 0u);
  ASSERT_TRUE(module_find(reinterpret_cast<uint64_t>(&gnu_get_libc_version), range));
  EXPECT_NE(range.module_id, 0u);
  EXPECT_NE(std::string(module_at(range.module_id).path).find("libc"), std::string::npos);
  EXPECT_FALSE(module_find(16, range));
}

}  // namespace
}  // namespace collect::agent
