// What the texts of the commands for files are put together from: buffers at their edges, and
// figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"

namespace collect::ctl {
namespace {

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

}  // namespace
}  // namespace collect::ctl
