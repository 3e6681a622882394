// What the texts of the commands for files are put together from: buffers at their edges, figures,
// moments, and what is said of a function that is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/select/function_filter.h"
#include "daemon/ctl/select/time_window.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"

namespace collect::ctl {
namespace {

using std::chrono::nanoseconds;

std::string text_of(const std::function<void(TextBuffer&)>& write) {
  TextBuffer text;
  write(text);
  return std::string(text.text());
}

// Of bytes that differ from their neighbours.
std::string pattern(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + (i + i / 26) % 26);
  return text;
}

TEST(TextBufferTest, HoldsWhatIsPutAtEveryEdge) {
  constexpr size_t kFirst = TextBuffer::kFirstBytes;
  for (const size_t before : {size_t{0}, size_t{1}, size_t{3}, kFirst - 1, kFirst}) {
    for (const size_t size : {size_t{0}, size_t{1}, kFirst - 1, kFirst, kFirst + 1, 3 * kFirst}) {
      const std::string first = pattern(before), then = pattern(size);
      TextBuffer text;
      text.put(first);
      text.put(then);
      text.put('.');
      EXPECT_TRUE(text.text() == first + then + ".") << before << " " << size;
      EXPECT_EQ(text.size(), before + size + 1);
      std::ostringstream stream;
      {
        TextOut out(stream);
        out.put(first);
        out.put(then);
        out.put('.');
      }
      EXPECT_TRUE(stream.str() == first + then + ".") << before << " " << size;
    }
  }
  TextBuffer text;
  std::string expected;
  for (size_t i = 0; i < 3 * kFirst; ++i) {
    text.put(static_cast<char>('a' + i % 26));
    expected += static_cast<char>('a' + i % 26);
  }
  EXPECT_TRUE(text.text() == expected);
  text.clear();
  EXPECT_EQ(text.text(), "");
  text.put("again");
  EXPECT_EQ(text.text(), "again");
}

TEST(TextBufferTest, Repeats) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{64},
                             size_t{65}, size_t{200}}) {
    EXPECT_EQ(text_of([&](TextBuffer& out) { out.repeat(' ', count); }), std::string(count, ' '));
    EXPECT_EQ(text_of([&](TextBuffer& out) { out.repeat('x', count); }), std::string(count, 'x'));
  }
}

TEST(TextBufferTest, Numbers) {
  const auto dec = [](uint64_t number, size_t width) {
    return text_of([&](TextBuffer& out) { out.dec(number, width); });
  };
  EXPECT_EQ(dec(7, 0), "7");
  EXPECT_EQ(dec(7, 1), "7");
  EXPECT_EQ(dec(7, 2), " 7");
  EXPECT_EQ(dec(1234, 3), "1234");
  EXPECT_EQ(dec(UINT64_MAX, 22), "  18446744073709551615");
  const auto count = [](uint64_t number) {
    return text_of([&](TextBuffer& out) { out.count(number, "thread"); });
  };
  EXPECT_EQ(count(0), "0 threads");
  EXPECT_EQ(count(1), "1 thread");
  EXPECT_EQ(count(2), "2 threads");
  const auto seconds = [](uint64_t ns) {
    return text_of([&](TextBuffer& out) { out.seconds(ns); });
  };
  EXPECT_EQ(seconds(0), "0.000000000");
  EXPECT_EQ(seconds(12'000'000'345), "12.000000345");
  EXPECT_EQ(seconds(UINT64_MAX), "18446744073.709551615");
  const auto micros = [](int64_t ns, size_t width) {
    return text_of([&](TextBuffer& out) { out.micros(ns, width); });
  };
  EXPECT_EQ(micros(0, 0), "0.000");
  EXPECT_EQ(micros(0, 5), "0.000");
  EXPECT_EQ(micros(0, 6), " 0.000");
  EXPECT_EQ(micros(-1'234'567, 10), " -1234.567");
  EXPECT_EQ(micros(-1, 0), "-0.001");
  EXPECT_EQ(micros(987'654'321, 4), "987654.321");
  EXPECT_EQ(micros(INT64_MAX, 22), "  9223372036854775.807");
}

TEST(TextBufferTest, HexadecimalDigits) {
  EXPECT_EQ(text_of([](TextBuffer& out) { out.hex(0x2a); }), "0x2a");
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{40'000}}) {
    std::vector<uint8_t> bytes(size);
    std::string expected;
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<uint8_t>(i * 7);
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(bytes[i]));
      expected += digits;
    }
    EXPECT_TRUE(text_of([&](TextBuffer& out) { out.hex_bytes(bytes); }) == expected) << size;
  }
}

TEST(TextBufferTest, NamesOfOthers) {
  const auto quoted = [](std::string_view name, size_t most) {
    return text_of([&](TextBuffer& out) { out.quoted(name, most); });
  };
  EXPECT_EQ(quoted("abc", 3), "\"abc\"");
  EXPECT_EQ(quoted("abcdef", 5), "\"ab…\"");
  EXPECT_EQ(quoted("a\"b", 9), "\"a\\\"b\"");
  EXPECT_EQ(quoted("a\x1b", 9), "\"a\\x1b\"");
  EXPECT_EQ(quoted("", 9), "\"\"");
  const auto printable = [](std::string_view name, size_t most) {
    return text_of([&](TextBuffer& out) { out.printable(name, most); });
  };
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "…");
  EXPECT_EQ(printable("a\x1b", 9), "a\\x1b");
  EXPECT_EQ(text_of([](TextBuffer& out) { out.sentence("a\n\"b\""); }), "a\\n\"b\"");
  EXPECT_EQ(text_of([](TextBuffer& out) {
              out.json_string("a\"");
              out.json_string("b");
            }),
            "\"a\\\"\"\"b\"");
  EXPECT_EQ(json_text("a\"\n"), "\"a\\\"\\n\"");
}

// Counts what reaches it.
class CountingBuffer : public std::stringbuf {
 public:
  int syncs = 0;

 protected:
  int sync() override {
    ++syncs;
    return 0;
  }
};

TEST(TextOutTest, KeepsOrderAndFlushes) {
  CountingBuffer buffer;
  std::ostream stream(&buffer);
  {
    TextOut out(stream);
    out.flush();
    EXPECT_EQ(buffer.syncs, 0) << "of nothing";
    out.put("a");
    EXPECT_EQ(buffer.str(), "");
    out.put_block("b");
    EXPECT_EQ(buffer.str(), "ab");
    EXPECT_EQ(buffer.syncs, 2);
    out.put("c");
    out.control("\x1b[1m");
    out.put("d");
    out.flush();
    EXPECT_EQ(buffer.str(), "abc\x1b[1md");
    out.put("e");
    EXPECT_TRUE(out.ok());
  }
  EXPECT_EQ(buffer.str(), "abc\x1b[1mde");
}

TEST(TextOutTest, ReaderThatGoesAwayEndsIt) {
  std::ostringstream stream;
  TextOut out(stream);
  out.put("a");
  out.flush();
  stream.setstate(std::ios::badbit);
  out.put("b");
  out.flush();
  EXPECT_FALSE(out.ok());
  stream.clear();
  out.put_block("c");
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(stream.str(), "a") << "the rest is dropped";
}

TEST(PrintableStreamTest, PassesFlushesOn) {
  CountingBuffer sink;
  std::ostream stream(&sink);
  {
    PrintableStream net(stream);
    stream << "a" << std::flush;
    EXPECT_EQ(sink.syncs, 1);
    EXPECT_EQ(stream.rdbuf()->sputc('b'), 'b');
    EXPECT_NE(stream.rdbuf()->sputc('\x1b'), std::char_traits<char>::eof());
  }
  EXPECT_EQ(sink.syncs, 2) << "and its end is one";
  EXPECT_EQ(sink.str(), "ab\\x1b");
}

TEST(PrintableStreamTest, ControlThatCannotBeWrittenIsAFailure) {
  class Closed : public std::streambuf {};  // takes nothing
  Closed closed;
  std::ostream nowhere(&closed);
  PrintableStream net(nowhere);
  put_control(nowhere, "\x1b[1m");
  EXPECT_TRUE(nowhere.bad());
}

// ---- figures

TEST(Figures, AreAsShortAsTheyCanBe) {
  EXPECT_EQ(short_bytes(1), "1 B");
  EXPECT_EQ(short_bytes(999), "999 B");
  EXPECT_EQ(short_bytes(1000), "1.0 kB");
  EXPECT_EQ(short_bytes(9'999'000'000'000), "10.0 TB");
  EXPECT_EQ(short_rate(0), "0/s");
  EXPECT_EQ(short_duration(0), "0 ms");
  EXPECT_EQ(short_duration(0.0009994), "999 us");
  EXPECT_EQ(short_duration(0.0009995), "1 ms");
  EXPECT_EQ(short_duration(59.94), "59.9 s");
  EXPECT_EQ(short_duration(61), "1 min 01 s");
  EXPECT_EQ(short_duration(3659), "1 h 00 min");
  EXPECT_EQ(short_duration(3660), "1 h 01 min");
  EXPECT_EQ(short_duration(360'000), "100 h 00 min");
  EXPECT_EQ(counted(0, "call"), "0 calls");
  EXPECT_EQ(counted(1, "call"), "1 call");
  EXPECT_EQ(counted(1234, "call"), "1,234 calls");
  EXPECT_EQ(with_thousands(100), "100");
  EXPECT_EQ(with_thousands(123'456), "123,456");
  EXPECT_EQ(with_thousands(1'234'567), "1,234,567");
  EXPECT_EQ(real_text(0.5), "0.5");
  EXPECT_EQ(real_text(-1e300), "-1e+300");
}

TEST(Figures, CellsOfReports) {
  const auto cell = [](uint64_t ns) {
    return text_of([&](TextBuffer& o) { put_time_cell(o, ns); });
  };
  EXPECT_EQ(cell(0), "    0.000 us");
  EXPECT_EQ(cell(999'999), "  999.999 us");
  EXPECT_EQ(cell(1'000'000), "    1.000 ms");
  EXPECT_EQ(cell(999'999'999), "  999.999 ms");
  EXPECT_EQ(cell(1'000'000'000), "    1.000 s ");
  EXPECT_EQ(cell(3'600'123'000'000), " 3600.123 s ");
  const auto change = [](uint64_t before, uint64_t after) {
    return text_of([&](TextBuffer& out) { put_change_cell(out, before, after); });
  };
  EXPECT_EQ(change(5, 5), "     0.000 us");
  EXPECT_EQ(change(0, 1500), "    +1.500 us");
  EXPECT_EQ(change(1'500'000, 0), "    -1.500 ms");
  EXPECT_EQ(change(0, 999'999'999), "  +999.999 ms");
  EXPECT_EQ(change(0, 1'000'000'000), "    +1.000 s ");
  EXPECT_EQ(change(2'000'000'000, 1'000'000'000), "    -1.000 s ");
  const auto percent = [](uint64_t part, uint64_t whole) {
    return text_of([&](TextBuffer& out) { put_percent_cell(out, part, whole, 7); });
  };
  EXPECT_EQ(percent(0, 0), "      -");
  EXPECT_EQ(percent(0, 1), "    0.0");
  EXPECT_EQ(percent(1, 1), "  100.0");
  EXPECT_EQ(percent(1, 3), "   33.3");
  EXPECT_EQ(percent(2, 3), "   66.7");
  EXPECT_EQ(percent(1, 2000), "    0.1") << "half of a tenth is one";
  EXPECT_EQ(percent(1, 2001), "    0.0");
  EXPECT_EQ(percent(123'456, 1), "12345600.0");
  EXPECT_EQ(percent(UINT64_MAX, UINT64_MAX), "  100.0");
}

// ---- moments

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

// ---- functions that are not there

TEST(NameFilterTest, SaysWhatComesNear) {
  const auto said = [](const std::string& word, const std::vector<std::string>& known) {
    auto filter = NameFilter::make({"main", word});
    EXPECT_TRUE(filter.ok());
    EXPECT_TRUE(filter->wants("main"));
    const Status found = filter->check_all_found("function", known);
    EXPECT_EQ(found.code(), Code::kNotFound);
    return found.error().message;
  };
  EXPECT_EQ(said("prase", {"main", "int json::parse(char*)"}),
            "no function matches \"prase\"; did you mean parse?");
  EXPECT_EQ(said("zebra", {"main"}), "no function matches \"zebra\"; 1 is known, main");
  EXPECT_EQ(said("zebra", {"main", "other"}),
            "no function matches \"zebra\"; 2 are known, such as main");
  EXPECT_EQ(said("zebra", {}), "no function matches \"zebra\"");
}

TEST(NameFilterTest, IdMeansOneFunctionAndNoName) {
  auto filter = NameFilter::make({"0x0"});
  ASSERT_TRUE(filter.ok());
  EXPECT_FALSE(filter->wants("x")) << "a name has no id";
  EXPECT_FALSE(filter->wants("x", 1));
  EXPECT_FALSE(filter->check_all_found("function", {}).ok());
  EXPECT_TRUE(filter->wants("x", 0));
  EXPECT_TRUE(filter->check_all_found("function", {}).ok());
  EXPECT_EQ(NameFilter::make({""}).error().message.substr(0, 12), "--function: ");
  EXPECT_TRUE(NameFilter::make({})->wants("anything"));
}

TEST(FunctionFilterTest, EachFunctionIsDecidedOnce) {
  read::SessionManifest manifest;
  manifest.symbols = {{1, "alpha"}, {2, "beta"}, {3, "gamma"}};
  const read::NameTable names(manifest);
  auto filter = FunctionFilter::make({"alpha", "0x2", "gamma"}, names);
  ASSERT_TRUE(filter.ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(filter->wants(1));
    EXPECT_TRUE(filter->wants(2));
    EXPECT_FALSE(filter->wants(4));
  }
  // A function with a name counts as found although no event was of it.
  EXPECT_TRUE(filter->check_all_found("function", manifest.symbols).ok());
  auto wrong = FunctionFilter::make({"alpa"}, names);
  EXPECT_EQ(wrong->check_all_found("thing", manifest.symbols).error().message,
            "no thing matches \"alpa\"; did you mean alpha?");
  auto everything = FunctionFilter::make({}, names);
  EXPECT_TRUE(everything->wants(77));
  EXPECT_TRUE(everything->check_all_found("function", manifest.symbols).ok());
}

}  // namespace
}  // namespace collect::ctl
