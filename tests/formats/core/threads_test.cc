#include "formats/core/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "formats/core/task_threads.h"

namespace collect {
namespace {

constexpr std::chrono::seconds kPatience{30};

std::atomic<int> g_reports{0};

void count_report(const std::string& what, const Error& error) {
  EXPECT_EQ(what, "test");
  EXPECT_EQ(error.code, Code::kExhausted);
  ++g_reports;
}

TEST(ContainTest, WhatIsThrownIsAnErrorOfThisMachine) {
  EXPECT_TRUE(contain([] {}).ok());
  const Status memory = contain([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), Code::kExhausted);
  EXPECT_EQ(memory.error().message, "out of memory");
  const auto thrown = [](std::errc code) {
    return contain([code] { throw std::system_error(std::make_error_code(code), "thread"); });
  };
  EXPECT_EQ(thrown(std::errc::resource_unavailable_try_again).code(), Code::kExhausted);
  EXPECT_EQ(thrown(std::errc::too_many_files_open).code(), Code::kExhausted);
  EXPECT_EQ(thrown(std::errc::no_space_on_device).code(), Code::kNoSpace);
  const Status other = contain([] { throw std::runtime_error("it broke"); });
  EXPECT_EQ(other.code(), Code::kIo);
  EXPECT_EQ(other.error().message, "it broke");
  EXPECT_FALSE(contain([] { throw 1; }).ok());
}

TEST(StartThreadTest, WorkThatThrowsIsReportedAndCalledAgain) {
  report_faults_to(&count_report);
  std::promise<int> done;
  int calls = 0;
  {
    const auto thread = start_thread("test", [&] {
      if (++calls < 3) throw std::bad_alloc();
      done.set_value(calls);
    });
    ASSERT_TRUE(thread.ok());
    auto result = done.get_future();
    ASSERT_EQ(result.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(result.get(), 3);
  }
  EXPECT_EQ(g_reports, 2);
}

TEST(StartThreadTest, WithoutAThreadItIsAnError) {
  const ThreadShortage shortage(1, 1);
  EXPECT_TRUE(start_thread("test", [] {}).ok());
  const auto refused = start_thread("test", [] { FAIL() << "it was not started"; });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_NE(refused.error().message.find("ulimit -u"), std::string::npos);
  EXPECT_TRUE(start_thread("test", [] {}).ok()) << "only for a while";
}

TEST(ProbeThreadsTest, SaysHowManyThereAre) {
  EXPECT_TRUE(probe_threads(4).ok());
  const ThreadShortage shortage(3, 1);
  const Status probed = probe_threads(5);
  ASSERT_FALSE(probed.ok());
  EXPECT_TRUE(probed.error().message.starts_with("3 of 5 threads")) << probed.error().message;
}

TEST(WorkersTest, AreAsManyAsTheSystemStarts) {
  const ThreadShortage shortage(2, 1);
  std::atomic<size_t> numbers{0};
  Workers workers("test", 4, [&](size_t number) { numbers += number; });
  EXPECT_EQ(workers.count(), 2u);
  workers.join();
  EXPECT_EQ(numbers, 3u);
}

TEST(WorkersTest, ThrowToWhoWaits) {
  Workers workers("test", 3, [](size_t number) {
    if (number == 2) throw std::bad_alloc();
  });
  EXPECT_THROW(workers.join(), std::bad_alloc);
}

TEST(TaskThreadsTest, DoesAllThatWasPostedInOrder) {
  std::vector<int> done;
  TaskThreads threads("test", 1);
  const auto refuse = [](const Error& error) { FAIL() << error.message; };
  for (int i = 0; i < 100; ++i) threads.post([&done, i] { done.push_back(i); }, refuse);
  threads.join();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
}

TEST(TaskThreadsTest, ReportsATaskThatThrowsAndContinues) {
  report_faults_to(&count_report);
  g_reports = 0;
  bool followed = false;
  TaskThreads threads("test", 1);
  const auto refuse = [](const Error& error) { FAIL() << error.message; };
  threads.post([] { throw std::bad_alloc(); }, refuse);
  threads.post([&] { followed = true; }, refuse);
  threads.join();
  EXPECT_TRUE(followed);
  EXPECT_EQ(g_reports, 1);
}

TEST(TaskThreadsTest, RefusesWithoutAThreadAndWorksLater) {
  TaskThreads threads("test", 2);
  int refused = 0;
  int done = 0;
  const auto refuse = [&](const Error& error) {
    EXPECT_EQ(error.code, Code::kExhausted);
    ++refused;
  };
  {
    const ThreadShortage shortage(0, 1);
    threads.post([&] { ++done; }, refuse);
    EXPECT_EQ(refused, 1);
  }
  threads.post([&] { ++done; }, refuse);
  threads.join();
  EXPECT_EQ(done, 1);
  threads.post([&] { ++done; },
               [&](const Error& error) { EXPECT_EQ(error.code, Code::kCancelled); });
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace collect
