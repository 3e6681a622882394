#include "daemon/control/request_checks.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

TEST(RequestChecksTest, NamesAreBoundedText) {
  EXPECT_TRUE(check_name("name", "").ok());
  EXPECT_TRUE(check_name("name", "agents/ü-1").ok());
  EXPECT_TRUE(check_name("name", std::string(kMaxNameBytes, 'x')).ok());
  EXPECT_FALSE(check_name("name", std::string(kMaxNameBytes + 1, 'x')).ok());
  EXPECT_FALSE(check_name("name", "a\nb").ok());
  EXPECT_FALSE(check_name("name", "a\x1f").ok());
  EXPECT_FALSE(check_name("name", "a\x7f").ok());
  EXPECT_TRUE(check_name("name", "a ~").ok());
  EXPECT_FALSE(check_name("name", std::string("a\0b", 3)).ok());
}

TEST(RequestChecksTest, AnEmptyDetailRequestIsFine) {
  EXPECT_TRUE(check_detail({}).ok());
}

TEST(RequestChecksTest, DetailLimitsPlusOne) {
  v1::DetailRequest request;
  for (int i = 0; i < kMaxDetailThreads; ++i) request.add_threads(1);
  EXPECT_TRUE(check_detail(request).ok());
  request.add_threads(1);
  EXPECT_FALSE(check_detail(request).ok());

  request.Clear();
  for (int i = 0; i < kMaxDetailFunctions; ++i) request.add_thread_patterns("name=w*");
  EXPECT_TRUE(check_detail(request).ok());
  request.add_thread_patterns("name=w*");
  EXPECT_FALSE(check_detail(request).ok());

  request.Clear();
  for (int i = 0; i < kMaxDetailFunctions; ++i) request.add_functions("f*");
  EXPECT_TRUE(check_detail(request).ok());
  request.add_functions("f*");
  EXPECT_FALSE(check_detail(request).ok());

  request.Clear();
  request.add_functions(std::string(kMaxFunctionPatternBytes, 'f'));
  EXPECT_TRUE(check_detail(request).ok());
  request.set_functions(0, std::string(kMaxFunctionPatternBytes + 1, 'f'));
  EXPECT_FALSE(check_detail(request).ok());
  request.set_functions(0, "");
  EXPECT_FALSE(check_detail(request).ok());
}

TEST(RequestChecksTest, EachPartOfADetailRequestIsLookedAt) {
  const auto said = [](auto change) {
    v1::DetailRequest request;
    change(request);
    const Status checked = check_detail(request);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_NE(said([](auto& request) { request.set_target("\n"); }).find("target"),
            std::string::npos);
  EXPECT_NE(said([](auto& request) { request.add_thread_patterns(""); }).find("thread_patterns"),
            std::string::npos);
  EXPECT_NE(said([](auto& request) { request.add_functions("f\n"); }).find("functions"),
            std::string::npos);
  EXPECT_NE(
      said([](auto& request) { request.mutable_pre_roll()->set_seconds(-1); }).find("pre_roll"),
      std::string::npos);
}

TEST(RequestChecksTest, FunctionFiltersHaveTheSameLimits) {
  EXPECT_TRUE(check_function_filter({}).ok());
  v1::SetFunctionFilterRequest request;
  request.set_target("\n");
  EXPECT_FALSE(check_function_filter(request).ok());
  request.Clear();
  for (int i = 0; i < kMaxDetailFunctions; ++i) {
    request.add_only("f*");
    request.add_except("g*");
  }
  EXPECT_TRUE(check_function_filter(request).ok());
  v1::SetFunctionFilterRequest more = request;
  more.add_only("f*");
  EXPECT_FALSE(check_function_filter(more).ok());
  request.add_except("g*");
  EXPECT_FALSE(check_function_filter(request).ok());
}

TEST(RequestChecksTest, MarkersSaySomethingAndNotTooMuch) {
  v1::AnnotateRequest request;
  EXPECT_FALSE(check_annotation(request).ok());
  request.set_text(std::string(kMaxAnnotationBytes, 'x'));
  EXPECT_TRUE(check_annotation(request).ok());
  request.set_target("\n");
  EXPECT_FALSE(check_annotation(request).ok());
  request.clear_target();
  request.mutable_text()->push_back('x');
  EXPECT_FALSE(check_annotation(request).ok());
}

TEST(RequestChecksTest, DurationsAreNotNegative) {
  v1::DetailRequest request;
  request.mutable_duration()->set_seconds(kMaxDetailSeconds);
  request.mutable_pre_roll()->set_nanos(999'999'999);
  EXPECT_TRUE(check_detail(request).ok());
  request.mutable_pre_roll()->set_nanos(1'000'000'000);
  EXPECT_FALSE(check_detail(request).ok());
  request.mutable_pre_roll()->set_nanos(-1);
  EXPECT_FALSE(check_detail(request).ok());
  request.clear_pre_roll();
  request.mutable_duration()->set_seconds(-1);
  EXPECT_FALSE(check_detail(request).ok());
  request.mutable_duration()->set_seconds(kMaxDetailSeconds + 1);
  EXPECT_FALSE(check_detail(request).ok());
}

TEST(RequestChecksTest, WatchIntervalsAreClamped) {
  v1::WatchSessionRequest request;
  EXPECT_EQ(*watch_interval_ms(request), kDefaultWatchIntervalMs);
  request.mutable_interval()->set_nanos(1);
  EXPECT_EQ(*watch_interval_ms(request), kMinWatchIntervalMs);
  request.mutable_interval()->set_nanos(250'000'000);
  EXPECT_EQ(*watch_interval_ms(request), 250u);
  request.mutable_interval()->set_nanos(999'999'999);
  EXPECT_EQ(*watch_interval_ms(request), 999u);
  request.mutable_interval()->set_seconds(2);
  EXPECT_EQ(*watch_interval_ms(request), 2'999u);
  request.mutable_interval()->set_nanos(1'000'000'000);
  EXPECT_FALSE(watch_interval_ms(request).ok());
  request.mutable_interval()->set_nanos(-1);
  EXPECT_FALSE(watch_interval_ms(request).ok());
  request.mutable_interval()->set_nanos(0);
  request.mutable_interval()->set_seconds(INT64_MAX);
  EXPECT_EQ(*watch_interval_ms(request), kMaxWatchIntervalMs);
  request.mutable_interval()->set_seconds(-1);
  EXPECT_FALSE(watch_interval_ms(request).ok());
}

}  // namespace
}  // namespace collect::control
