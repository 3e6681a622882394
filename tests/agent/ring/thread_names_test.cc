// Names of threads, given by any thread and at any time.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

void begin(uint32_t buffer_mb = 1) {
  Settings settings;
  settings.buffer_mb = buffer_mb;
  ASSERT_TRUE(recorder_init(settings));
  start_recording();
}

void record_call() {
  on_event(reinterpret_cast<uint64_t>(&record_call), atf::EventKind::kCall, HookFrame());
}

StreamInfo info_of(Stream& stream) {
  StreamInfo info{};
  stream_info(stream, info);
  return info;
}

// Looks as the drain does, until the stream has had so many names: a name that stays is looked at
// every kRarestNameLook-th time at least.
void poll_until(Stream& stream, uint32_t names) {
  for (uint32_t i = 0; i < 2 * kRarestNameLook && stream_names(stream) < names; ++i) poll_threads();
}

TEST(ThreadNames, NameThatAnotherThreadGivesIsSeen) {
  begin();
  std::atomic<int> step{0};
  std::thread thread([&] {
    pthread_setname_np(pthread_self(), "first");
    record_call();
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  Stream& stream = *stream_at(0);
  EXPECT_STREQ(info_of(stream).name, "first");
  EXPECT_EQ(info_of(stream).names, 1u);
  EXPECT_EQ(info_of(stream).named_ns, 0u);
  for (uint32_t i = 0; i < 3 * kRarestNameLook; ++i) poll_threads();
  EXPECT_EQ(stream_names(stream), 1u);
  const uint64_t before_ns = now_ns();
  for (const char* const name : {"second", "", "bad\xff\xfe"}) {
    const uint32_t names = stream_names(stream);
    ASSERT_EQ(pthread_setname_np(thread.native_handle(), name), 0);
    poll_until(stream, names + 1);
    EXPECT_STREQ(info_of(stream).name, name);
    EXPECT_GE(info_of(stream).named_ns, before_ns);
  }
  pthread_setname_np(thread.native_handle(), "last");
  stop_recording();
  EXPECT_TRUE(stream_ended(stream));
  EXPECT_STREQ(info_of(stream).name, "last") << "the end of the recording is a look, too";
  step = 2;
  thread.join();
  RingDrain().finish();
}

// What a thread calls itself is there when no one has looked before it ended.
TEST(ThreadNames, ThreadsOwnNameOutlivesIt) {
  begin();
  const auto name_itself = [](const char* name) {  // as shims/thread_names.cc does
    ASSERT_EQ(pthread_setname_np(pthread_self(), name), 0);
    note_own_name(name);
  };
  std::thread([&] {
    name_itself("before");
    record_call();
  }).join();
  std::thread([&] {
    record_call();
    name_itself("longest-name-15");
    name_itself("after");
  }).join();
  EXPECT_STREQ(info_of(*stream_at(0)).name, "before");
  EXPECT_EQ(info_of(*stream_at(0)).named_ns, 0u);
  const StreamInfo info = info_of(*stream_at(1));
  EXPECT_STREQ(info.name, "after");
  EXPECT_GT(info.named_ns, info.start_ns);
  EXPECT_EQ(info.names, 1u);
  stop_recording();
  RingDrain().finish();
}

// With more threads than are looked at in one poll, each has its turn.
TEST(ThreadNames, NamesOfManyThreadsAreSeen) {
  constexpr size_t kThreads = kNameLooks + 8;
  begin(16);
  std::atomic<size_t> ready{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      record_call();
      ++ready;
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  while (ready != kThreads) std::this_thread::yield();
  for (uint32_t slot = 0; slot < kThreads; ++slot) (void)info_of(*stream_at(slot));
  for (std::thread& thread : threads) pthread_setname_np(thread.native_handle(), "named");
  for (uint32_t i = 0; i < 2 * kRarestNameLook * 2; ++i) poll_threads();
  for (uint32_t slot = 0; slot < kThreads; ++slot) {
    EXPECT_EQ(stream_names(*stream_at(slot)), 2u) << slot;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  stop_recording();
  RingDrain().finish();
}

}  // namespace
}  // namespace collect::agent
