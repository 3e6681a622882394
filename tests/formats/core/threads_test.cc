#include "formats/core/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <ios>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
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

// Written by one thread of a test, and read when that thread has ended.
std::vector<std::pair<std::string, Error>> g_faults;

void keep_fault(const std::string& what, const Error& error) {
  g_faults.emplace_back(what, error);
}

void fail_to_report(const std::string&, const Error&) {
  throw std::bad_alloc();
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

TEST(ContainTest, EveryKindOfExceptionHasItsCodeAndWords) {
  int calls = 0;
  EXPECT_TRUE(contain([&] { ++calls; }).ok());
  EXPECT_EQ(calls, 1);
  const Status length = contain([] { throw std::bad_array_new_length(); });
  ASSERT_FALSE(length.ok());
  EXPECT_EQ(length.code(), Code::kExhausted) << "it is a bad_alloc";
  EXPECT_EQ(length.error().message, "out of memory");
  const std::pair<std::errc, Code> kSystem[] = {
      {std::errc::resource_unavailable_try_again, Code::kExhausted},  // of a thread, not of a peer
      {std::errc::connection_refused, Code::kUnavailable},
      {std::errc::not_enough_memory, Code::kExhausted},
      {std::errc::permission_denied, Code::kPermission},
      {std::errc::no_such_file_or_directory, Code::kNotFound},
      {std::errc::io_error, Code::kIo}};
  for (const auto& [number, code] : kSystem) {
    const std::error_code thrown = std::make_error_code(number);
    const Status status = contain([&] { throw std::system_error(thrown, "/x"); });
    ASSERT_FALSE(status.ok()) << thrown.message();
    EXPECT_EQ(status.code(), code) << thrown.message();
    EXPECT_EQ(status.error().message, "/x: " + thrown.message());
  }
  // Its number is 1, and that is no EPERM.
  const Status stream = contain([] { throw std::ios_base::failure("it is closed"); });
  EXPECT_EQ(stream.code(), Code::kIo);
  EXPECT_TRUE(stream.error().message.starts_with("it is closed: ")) << stream.error().message;
  const Status logic = contain([] { throw std::logic_error("a mistake"); });
  ASSERT_FALSE(logic.ok());
  EXPECT_EQ(logic.code(), Code::kIo);
  EXPECT_EQ(logic.error().message, "a mistake");
  const Status number = contain([] { throw 1; });
  ASSERT_FALSE(number.ok());
  EXPECT_EQ(number.code(), Code::kIo);
  EXPECT_EQ(number.error().message, "unknown fault");
}

TEST(ReportFaultTest, ReportThatThrowsIsSaidOnStandardError) {
  report_faults_to(&fail_to_report);
  ::testing::internal::CaptureStderr();
  report_fault("test", Error{Code::kIo, "it broke"});
  const std::string said = ::testing::internal::GetCapturedStderr();
  report_faults_to(&keep_fault);
  EXPECT_EQ(said, "a fault could not be reported: out of memory\n");
}

TEST(StartThreadTest, EachExceptionIsReportedBeforeAPause) {
  report_faults_to(&keep_fault);
  g_faults.clear();
  std::vector<std::chrono::steady_clock::time_point> calls;
  {
    const auto thread = start_thread("worker", [&] {
      calls.push_back(std::chrono::steady_clock::now());
      if (calls.size() == 1) {
        throw std::system_error(std::make_error_code(std::errc::too_many_files_open), "accept");
      }
      if (calls.size() == 2) throw std::runtime_error("it broke");
    });
    ASSERT_TRUE(thread.ok());
  }
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_GE(calls[1] - calls[0], kFaultPause);
  EXPECT_GE(calls[2] - calls[1], kFaultPause);
  ASSERT_EQ(g_faults.size(), 2u);
  EXPECT_EQ(g_faults[0].first, "worker");
  EXPECT_EQ(g_faults[0].second.code, Code::kExhausted);
  EXPECT_TRUE(g_faults[0].second.message.starts_with("accept: "));
  EXPECT_EQ(g_faults[1].first, "worker");
  EXPECT_EQ(g_faults[1].second.code, Code::kIo);
  EXPECT_EQ(g_faults[1].second.message, "it broke");
}

// More than Linux takes would leave the thread without its name.
TEST(StartThreadTest, ShowsFifteenCharactersOfAName) {
  for (const std::string name :
       {"fifteen_letters", "sixteen_letters_", "many_more_letters_than_fit"}) {
    std::promise<void> looked;
    auto thread = start_thread(name, [wait = looked.get_future().share()] { wait.wait(); });
    ASSERT_TRUE(thread.ok());
    char shown[64] = {};
    EXPECT_EQ(pthread_getname_np(thread->native_handle(), shown, sizeof shown), 0);
    EXPECT_EQ(std::string(shown), name.substr(0, 15));
    looked.set_value();
  }
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

TEST(StartThreadTest, RefusalHasTheWordsOfTheSystem) {
  const ThreadShortage shortage(0, 1);
  const auto refused = start_thread("test", [] {});
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.error().message;
  EXPECT_NE(message.find(std::generic_category().message(EAGAIN)), std::string::npos) << message;
}

TEST(StartThreadTest, ShortageEndsWithItsScope) {
  {
    const ThreadShortage shortage(0, 3);
    EXPECT_FALSE(start_thread("test", [] {}).ok());
  }
  EXPECT_TRUE(start_thread("test", [] {}).ok());
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
