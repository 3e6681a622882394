#include "storage/select/time_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "storage/select/time_window.h"

namespace collect::select {
namespace {

using std::chrono::nanoseconds;

TEST(TimeWordsTest, EveryUnitOfADuration) {
  EXPECT_EQ(*parse_duration("7ns"), nanoseconds(7));
  EXPECT_EQ(*parse_duration("7us"), nanoseconds(7'000));
  EXPECT_EQ(*parse_duration("3min"), nanoseconds(180'000'000'000));
  EXPECT_EQ(*parse_duration("3m"), nanoseconds(180'000'000'000));
  EXPECT_EQ(*parse_duration("0.5h"), nanoseconds(1'800'000'000'000));
  EXPECT_EQ(*parse_duration("1.6ns"), nanoseconds(2));
  EXPECT_EQ(*parse_duration("9000000000000000000ns"), nanoseconds(9'000'000'000'000'000'000));
  EXPECT_FALSE(parse_duration("9000000000000002000ns").ok());
  EXPECT_EQ(parse_duration("5x").error().message,
            "\"5x\" is no duration; write 5s, 200ms, 1.5m or 2h");
}

SessionTimes times_of(uint64_t start_unix_ns) {
  SessionTimes session;
  session.start_ns = 5'000;
  storage::Manifest manifest;
  manifest.identity.start_ns = 5'000;
  manifest.identity.start_unix_ns = start_unix_ns;
  TimeLine line;
  session.clock = *line.add(manifest);
  return session;
}

TEST(TimeWordsTest, MomentsOfADay) {
  // 2026-11-25 14:03:00 UTC at 5000 of the device's clock.
  const SessionTimes session = times_of(1'795'615'380'000'000'000);
  const auto at = [&](const char* text) { return parse_moment(text, session).value(); };
  const auto refused = [&](const char* text) { return parse_moment(text, session).code(); };
  EXPECT_EQ(at("14:03Z"), 5'000u);
  EXPECT_EQ(at("14:03z"), 5'000u);
  EXPECT_EQ(at("14:04Z"), 60'000'005'000u) << "seconds are 0 where none are written";
  EXPECT_EQ(at("2026-11-25 14:03:01Z"), 1'000'005'000u);
  EXPECT_EQ(at("2026-11-25T14:03:01.000000001Z"), 1'000'005'001u);
  EXPECT_EQ(at("14:03:00.123456789Z"), 123'461'789u);
  EXPECT_EQ(at("14:03:00.1Z"), 100'005'000u);
  EXPECT_EQ(refused("14:03:00.1234567890Z"), Code::kInvalidArgument) << "ten digits";
  EXPECT_EQ(refused("14:03:00.Z"), Code::kInvalidArgument);
  EXPECT_EQ(refused("14:03:00.1xZ"), Code::kInvalidArgument);
  EXPECT_EQ(refused("14:03:00.:Z"), Code::kInvalidArgument);
  EXPECT_EQ(refused("14:03:00./Z"), Code::kInvalidArgument);
  EXPECT_EQ(at("15:03:01+01:00"), 1'000'005'000u);
  EXPECT_EQ(at("2026-11-25T08:33:01-05:30"), 1'000'005'000u);
  EXPECT_EQ(at("2026-11-26T00:03:01.5+10:00"), 1'500'005'000u) << "RFC 3339";
  for (const char* zone : {"14:03:00+24:00", "14:03:00+01:60", "14:03:00+1:00", "14:03:00 01:00"}) {
    EXPECT_EQ(refused(zone), Code::kInvalidArgument) << zone;
  }
  EXPECT_EQ(refused("1960-01-01 00:00:00Z"), Code::kInvalidArgument) << "before the epoch";
  EXPECT_EQ(refused(":"), Code::kInvalidArgument);
  EXPECT_EQ(refused("Z"), Code::kInvalidArgument);
  EXPECT_EQ(parse_moment("noon", session).error().message,
            "\"noon\" is no time; write 1ms or 2.5s since the start, 14:03:05.25, "
            "\"2026-11-25 14:03:05\", or nanoseconds as dump --json prints them");
}

// Of several sessions: a time since the epoch needs no clock of a device.
TEST(TimeWordsTest, MomentsOnATimeLine) {
  SessionTimes line;
  line.is_time_line = true;
  line.start_ns = 1'795'615'380'000'000'000;
  EXPECT_EQ(*parse_moment("1.5s", line), line.start_ns + 1'500'000'000);
  EXPECT_EQ(*parse_moment("14:03:01Z", line), line.start_ns + 1'000'000'000);
  EXPECT_EQ(*parse_moment("1795615380000000007", line), line.start_ns + 7);
}

TEST(TimeWordsTest, TimesOfDayAsTheyArePrinted) {
  EXPECT_EQ(rfc3339_text(1'795'615'380, 0), "2026-11-25T14:03:00Z");
  EXPECT_EQ(rfc3339_text(1'795'615'380, 250'000'000), "2026-11-25T14:03:00.250Z");
  EXPECT_EQ(rfc3339_text(1'795'615'380, 1'000), "2026-11-25T14:03:00.000001Z");
  EXPECT_EQ(rfc3339_text(1'795'615'380, 1), "2026-11-25T14:03:00.000000001Z");
  EXPECT_EQ(rfc3339_text(253'402'300'799, 0), "9999-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339_text(253'402'300'800, 0), "");
  EXPECT_EQ(rfc3339_text(-62'135'596'800, 0), "0001-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339_text(-62'135'596'801, 0), "");
  EXPECT_EQ(rfc3339_text(0, 1'000'000'000), "");
  EXPECT_EQ(rfc3339_text(0, -1), "");
}

TEST(TimeWordsTest, WindowNamesTheOptionThatIsWrong) {
  const auto times = [] { return times_of(1'795'615'380'000'000'000); };
  const auto window = window_of({"1us", "14:03:01Z"}, times);
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window->first_ns, 6'000u);
  EXPECT_EQ(window->last_ns, 1'000'005'000u);
  EXPECT_THAT(window_of({"", "noon"}, times).error().message,
              ::testing::StartsWith("--until: \"noon\" is no time; write "));
  EXPECT_THAT(window_of({"noon", ""}, times).error().message,
              ::testing::StartsWith("--from: \"noon\" is no time; write "));
  EXPECT_EQ(window_of({"2us", "1us"}, times).error().message, "--until is before --from");
  EXPECT_TRUE(window_of({}, [] {
                ADD_FAILURE() << "no one needs to know";
                return SessionTimes();
              })->is_everything());
}

// In the reader's time zone, with its summer time.
TEST(TimeWordsTest, TimeZoneIsTheReaders) {
  const char* const given = std::getenv("TZ");
  const std::string before = given == nullptr ? "" : given;
  ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  ::tzset();
  const SessionTimes winter = times_of(1'795'615'380'000'000'000);
  EXPECT_EQ(*parse_moment("15:03:01", winter), 1'000'005'000u);
  EXPECT_EQ(*parse_moment("14:03:01Z", winter), 1'000'005'000u);
  // 2026-07-01 12:00:00 UTC is 14:00 there.
  const SessionTimes summer = times_of(1'782'907'200'000'000'000);
  EXPECT_EQ(*parse_moment("14:00:01", summer), 1'000'005'000u);
  if (given == nullptr) {
    ::unsetenv("TZ");
  } else {
    ::setenv("TZ", before.c_str(), 1);
  }
  ::tzset();
}

}  // namespace
}  // namespace collect::select
