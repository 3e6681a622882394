// Values and times: formats, gain and offset, exact decimals, the clocks of the document.
#include "formats/rtc/meta/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "formats/rtc/checksum.h"
#include "formats/rtc/read/reader.h"
#include "tests/formats/rtc/frame_bytes.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::bytes_of;
using testing::FrameBytes;

StreamInfo stream_of(const char* format) {
  StreamInfo stream;
  stream.name = "x";
  stream.format = Format::parse(format);
  return stream;
}

template <class T>
T raw(const char* format, std::vector<uint8_t> bytes, Endian writer = Endian::kLittle) {
  const auto value = decode_value(stream_of(format), bytes, writer);
  EXPECT_TRUE(value.ok()) << format;
  if (!value.ok() || !std::holds_alternative<T>(value.value().raw)) {
    ADD_FAILURE() << format;
    return T{};
  }
  return std::get<T>(value.value().raw);
}

TEST(RtcFormat, EveryNameOfTheDocument) {
  for (const char* text : {"int8", "uint8", "int16le", "uint16be", "int32", "uint32le", "int64be",
                           "uint64", "uint8le", "int8be"}) {
    const Format format = Format::parse(text);
    EXPECT_EQ(format.kind, FormatKind::kInteger) << text;
    EXPECT_EQ(format.is_signed, text[0] != 'u') << text;
    EXPECT_NE(std::string(text).find(std::to_string(format.bits)), std::string::npos);
    EXPECT_TRUE(format.is_number());
  }
  EXPECT_EQ(Format::parse("float32be").kind, FormatKind::kReal);
  EXPECT_EQ(Format::parse("float32be").endian, Endian::kBig);
  EXPECT_EQ(Format::parse("float64").endian, std::nullopt);
  EXPECT_EQ(Format::parse("leb128").is_signed, true);
  EXPECT_EQ(Format::parse("uleb128").is_signed, false);
  EXPECT_EQ(Format::parse("timespec").value_bytes(), 12u);
  EXPECT_EQ(Format::parse("utf-8").kind, FormatKind::kUtf8);
  EXPECT_EQ(Format::parse("annotate/uint16le").annotated().bits, 16);
  EXPECT_EQ(Format::parse("annotate/").annotated().kind, FormatKind::kOther);
  for (const char* text : {"", "int", "int24", "uint16xe", "ufloat32", "float16", "float8", "Int8",
                           "uuint8", "int16lebe", "sleb128", "annotate", "utf8", "uint16le "}) {
    EXPECT_EQ(Format::parse(text).kind, FormatKind::kOther) << text;
    EXPECT_EQ(Format::parse(text).text, text);
  }
}

TEST(RtcValue, NumbersInBothByteOrders) {
  EXPECT_EQ(raw<uint64_t>("uint16le", {0x34, 0x12}), 0x1234u);
  EXPECT_EQ(raw<uint64_t>("uint16be", {0x12, 0x34}), 0x1234u);
  EXPECT_EQ(raw<uint64_t>("uint16", {0x12, 0x34}, Endian::kBig), 0x1234u);
  EXPECT_EQ(raw<int64_t>("int16be", {0xFF, 0xFE}), -2);
  EXPECT_EQ(raw<int64_t>("int8", {0x80}), -128);
  EXPECT_EQ(raw<int64_t>("int32le", {0xFF, 0xFF, 0xFF, 0x7F}), 0x7FFFFFFF);
  EXPECT_EQ(raw<uint64_t>("uint64be", {0x80, 0, 0, 0, 0, 0, 0, 1}), 0x8000000000000001u);
  EXPECT_EQ(raw<double>("float32le", {0, 0, 0xC0, 0x3F}), 1.5);
  EXPECT_EQ(raw<double>("float64be", {0xC0, 0x09, 0x21, 0xFB, 0x54, 0x44, 0x2D, 0x18}),
            -3.141592653589793);
  EXPECT_EQ(raw<uint64_t>("uleb128", {0xE5, 0x8E, 0x26}), 624485u);
  EXPECT_EQ(raw<int64_t>("leb128", {0xC0, 0xBB, 0x78}), -123456);
  EXPECT_EQ(raw<Timespec>("timespec", {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}), (Timespec{1, 2}));
  EXPECT_EQ(raw<Timespec>("timespec", {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2}, Endian::kBig),
            (Timespec{1, 2}));
  EXPECT_EQ(raw<std::string_view>("utf-8", {'h', 'i'}), "hi");
  EXPECT_EQ(raw<Bytes>("png", {1, 2}).size(), 2u);
}

TEST(RtcValue, OnlyExactlyTheFormatsSize) {
  for (const char* format : {"uint16le", "int32", "float64", "timespec", "int8"}) {
    const size_t size = *Format::parse(format).value_bytes();
    for (size_t bytes = 0; bytes < size + 3; ++bytes) {
      const std::vector<uint8_t> payload(bytes);
      EXPECT_EQ(decode_value(stream_of(format), payload, Endian::kLittle).ok(), bytes == size);
    }
  }
  EXPECT_FALSE(decode_value(stream_of("uleb128"), {}, Endian::kLittle).ok());
  const std::vector<uint8_t> two = {1, 1};
  EXPECT_FALSE(decode_value(stream_of("uleb128"), two, Endian::kLittle).ok());
  const std::vector<uint8_t> bad_text = {0xC0, 0x80};
  EXPECT_FALSE(decode_value(stream_of("utf-8"), bad_text, Endian::kLittle).ok());
}

TEST(RtcValue, PlatformIsANumberOfFourBytes) {
  const std::vector<uint8_t> bytes = {4, 3, 2, 1};
  const auto value = decode_value(stream_of("platform"), bytes, Endian::kLittle);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(std::get<uint64_t>(value.value().raw), kPlatformValue);
  EXPECT_FALSE(decode_value(stream_of("platform"), Bytes(bytes).first(3), Endian::kLittle).ok());
}

TEST(RtcValue, GainAndOffset) {
  StreamInfo stream = stream_of("uint16le");
  stream.gain = 0.5;
  stream.offset = -10;
  const std::vector<uint8_t> payload = {100, 0};
  const auto value = decode_value(stream, payload, Endian::kLittle);
  EXPECT_EQ(value.value().number, 40.0);
  EXPECT_TRUE(value.value().has_gain_or_offset);
  EXPECT_EQ(std::get<uint64_t>(value.value().raw), 100u);

  // Neither is there, or the format has none.
  stream = stream_of("uint16le");
  EXPECT_FALSE(decode_value(stream, payload, Endian::kLittle)->has_gain_or_offset);
  EXPECT_EQ(decode_value(stream, payload, Endian::kLittle)->number, 100.0);
  stream.offset = 3;
  EXPECT_TRUE(decode_value(stream, payload, Endian::kLittle)->has_gain_or_offset);
  EXPECT_EQ(decode_value(stream, payload, Endian::kLittle)->number, 103.0);
  stream = stream_of("timespec");
  stream.gain = 2;
  const std::vector<uint8_t> time = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0x65, 0xCD, 0x1D};  // 1.5 s
  EXPECT_FALSE(decode_value(stream, time, Endian::kLittle)->has_gain_or_offset);
  EXPECT_EQ(decode_value(stream, time, Endian::kLittle)->number, 1.5);
}

TEST(RtcDecimal, ReadsAndWritesJsonNumbers) {
  for (const char* text : {"0", "1", "-1", "0.5", "-12.5", "1e-6", "100", "1234567890123", "1e300",
                           "2.5e-9", "-10", "4.1666666666666665e-8", "123456789012345678",
                           "1795880713.700310289", "9223372036854775807", "-9223372036854775807"}) {
    const auto number = Decimal::parse(text);
    ASSERT_TRUE(number) << text;
    EXPECT_EQ(number->text(), text);
    EXPECT_EQ(number->to_double(), std::strtod(text, nullptr)) << text;
  }
  for (const char* text :
       {"", "-", "01", "00", "-01", "012.5", ".5", "1.", "1e", "1e+", "+1", "0x1", "1 ", "nan",
        "9223372036854775808", "12345678901234567891", "1000000000000000000.1", "1e999"}) {
    EXPECT_FALSE(Decimal::parse(text)) << text;
  }
  // The exponent is that of the whole number, wherever the point and the zeros stand.
  for (const char* text : {"1e400", "100e398", "1e-400", "0.1e-399"}) {
    EXPECT_TRUE(Decimal::parse(text)) << text;
  }
  for (const char* text : {"1e401", "10e400", "1e-401", "0.1e-400"}) {
    EXPECT_FALSE(Decimal::parse(text)) << text;
  }
  EXPECT_EQ(Decimal(1e-6), *Decimal::parse("0.000001"));
  EXPECT_EQ(Decimal::parse("1e+2")->text(), "100");
  EXPECT_EQ(Decimal(NAN), Decimal(0));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number) || std::abs(number) < 1e-290 || std::abs(number) > 1e290) continue;
    ASSERT_EQ(Decimal(number).to_double(), number);
    ASSERT_EQ(*Decimal::parse(Decimal(number).text()), Decimal(number));
  }
}

// A double could not tell these apart.
// The text is a part of a larger one.
TEST(RtcDecimal, NumberEndsWhereTheTextEnds) {
  for (const std::string_view all : {"1234", "-12.25", "125e11", "1e+25", "1e-25"}) {
    for (size_t size = 0; size <= all.size(); ++size) {
      const std::string part(all.substr(0, size));
      EXPECT_EQ(Decimal::parse(all.substr(0, size)), Decimal::parse(part)) << part;
    }
  }
}

// 127 bits of attoseconds; what does not fit is no time.
TEST(RtcDecimal, SumsEndWhereTheNumbersDo) {
  constexpr Int128 kMax = ~(Int128{1} << 127);
  for (const Int128 sign : {Int128{1}, Int128{-1}}) {
    const ExactTime most{sign * kMax}, one{sign}, two{sign * 2}, less{sign * (kMax - 1)};
    EXPECT_FALSE(most.plus(one).has_value());
    EXPECT_FALSE(one.plus(most).has_value());
    EXPECT_FALSE(less.plus(two).has_value());
    ASSERT_TRUE(less.plus(one).has_value());
    EXPECT_TRUE(less.plus(one)->attoseconds == most.attoseconds);
    ASSERT_TRUE(most.plus(ExactTime{-sign}).has_value());
    EXPECT_TRUE(most.plus(ExactTime{-sign})->attoseconds == less.attoseconds);
    EXPECT_TRUE(most.plus(ExactTime{0})->attoseconds == most.attoseconds);
  }
}

TEST(RtcDecimal, TimesAreExact) {
  const Decimal micro(1e-6);
  EXPECT_EQ(ExactTime::of_integer(1609772400123457, micro, 0)->nanoseconds(), 1609772400123457000);
  EXPECT_EQ(ExactTime::of_integer(1, micro, Decimal(1609772400))->nanoseconds(),
            1609772400000001000);
  EXPECT_EQ(ExactTime::of_integer(3, Decimal(5e-10), 0)->nanoseconds(), 2);  // 1.5: to even
  EXPECT_EQ(ExactTime::of_integer(1, Decimal(5e-10), 0)->nanoseconds(), 0);  // 0.5: to even
  EXPECT_EQ(ExactTime::of_integer(-3, Decimal(5e-10), 0)->nanoseconds(), -2);
  EXPECT_EQ(ExactTime::of_timespec(1795165157, 984972052).nanoseconds(), 1795165157984972052);
  EXPECT_EQ(ExactTime::of_real(0.25, 1, 0)->nanoseconds(), 250000000);
  EXPECT_EQ(ExactTime::of_real(1609772400.5, 1, 0)->nanoseconds(), 1609772400500000000);
  EXPECT_EQ(ExactTime::of_timespec(UINT64_MAX, UINT32_MAX).nanoseconds(), std::nullopt);
  EXPECT_EQ(ExactTime::of_real(INFINITY, 1, 0), std::nullopt);
  EXPECT_EQ(ExactTime::of_real(1e300, 1, 0), std::nullopt);
  EXPECT_EQ(ExactTime::of_real(1e-300, 1, 0)->nanoseconds(), 0);
  EXPECT_EQ(ExactTime::of_integer(5, Decimal(1e300), 0), std::nullopt);
  EXPECT_EQ(ExactTime::of_integer(5, Decimal(1e-300), 0)->nanoseconds(), 0);
  // Powers of two by the smallest step, and none of it.
  EXPECT_EQ(ExactTime::of_real(4294967296.0, Decimal(1e-18), 0)->attoseconds, 4294967296);
  EXPECT_EQ(ExactTime::of_real(0.0, Decimal(1e-18), 0)->attoseconds, 0);
  EXPECT_EQ(ExactTime::of_real(1e-300, 1, 0)->attoseconds, 0);
  for (const double seconds : {0.5, 1.0, 2.0, 3.0, 4.0}) {
    EXPECT_EQ(ExactTime::of_real(seconds, 1, 0)->nanoseconds(), std::llround(seconds * 1e9));
  }
}

uint64_t ms(uint64_t value) {
  return value * 1000000;
}

// The sequence in the document's section "Timestamp".
TEST(RtcClocks, DeltaCountsFromItsBaseAsItWas) {
  FrameBytes made;
  made.head(0, R"([{"id":9,"name":"clk","clock":true,"type":"timespec"},)"
               R"({"id":10,"name":"clk delta","clock":true,"type":"uleb128","gain":1e-3,)"
               R"("delta":"clk"},{"id":11,"name":"sample","clock":"clk delta"},12])");
  const auto clk = [&](uint64_t ns) {
    std::array<uint8_t, kTimespecBytes> value;
    encode_timespec_ns(ns, value);
    made.frame(9, value);
  };
  const auto delta = [&](uint64_t value) {
    uint8_t out[kLeb128MaxBytes];
    made.frame(10, Bytes(out, write_uleb128(out, value)));
  };
  made.text(11, "before any clock");
  clk(ms(30556));
  delta(100);
  made.text(11, "a").text(11, "b");
  delta(200);
  made.text(11, "c");
  delta(300);
  clk(ms(31034));
  made.text(11, "d");
  delta(1);
  made.text(11, "e").crc();
  auto reader = Reader::open(made.bytes);
  std::vector<std::optional<int64_t>> times;
  for (Object object; reader->next(object);) {
    if (!object.stream->is_clock) times.push_back(object.time_ns);
  }
  const auto at = [](uint64_t value) { return std::optional<int64_t>(ms(value)); };
  EXPECT_EQ(times, (std::vector<std::optional<int64_t>>{std::nullopt, at(30656), at(30656),
                                                        at(30756), at(30856), at(31035)}));
  EXPECT_EQ(reader->clock_ns("clk"), at(31034));
  EXPECT_EQ(reader->clock_ns("clk delta"), at(31035));
  EXPECT_EQ(reader->clock_ns("sample"), std::nullopt);
  EXPECT_TRUE(reader->clock_has_epoch("clk delta"));
  EXPECT_TRUE(reader->findings().list().empty());
}

TEST(RtcClocks, SeveralClocksAndOddOnes) {
  FrameBytes made;
  made.head(0, R"([{"id":9,"name":"cycles","clock":true,"format":"uint64le","gain":1e-8},)"
               R"({"id":10,"name":"real","clock":true,"format":"float64","offset":1.5},)"
               R"({"id":11,"name":"a","clock":"cycles"},{"id":12,"name":"b","clock":"real"},)"
               R"({"id":13,"name":"c","clock":"absent"},{"id":14,"name":"d"},)"
               R"({"id":15,"name":"loop","clock":true,"format":"uint8","delta":"loop"},16])");
  uint8_t value[8];
  store_le<uint64_t>(value, 300000000);
  made.frame(9, value);
  store_le(value, 0.25);
  made.frame(10, value).text(11, "x").text(12, "x").text(13, "x").text(14, "x");
  made.frame(10, Bytes(value, 3)).text(12, "x");
  made.frame(15, Bytes(value, 1)).frame(15, Bytes(value, 1)).crc();
  auto reader = Reader::open(made.bytes);
  std::vector<std::optional<int64_t>> times;
  for (Object object; reader->next(object);) {
    if (!object.stream->is_clock) times.push_back(object.time_ns);
  }
  const std::optional<int64_t> none;
  EXPECT_EQ(times, (std::vector<std::optional<int64_t>>{3000000000, 1750000000, none, none, none}));
  EXPECT_FALSE(reader->clock_has_epoch("cycles"));
  EXPECT_TRUE(reader->clock_has_epoch("real"));
  EXPECT_FALSE(reader->clock_has_epoch("loop"));
  EXPECT_EQ(reader->findings().warnings(), 2u);  // a clock that is not there, a value that is none
  EXPECT_EQ(reader->seek_time(0, "cycles").ok(), true);
}

TEST(RtcAnnotations, BelongToAStreamOrATime) {
  FrameBytes made;
  made.head(0,
            R"([{"id":9,"name":"clk","clock":true,"format":"timespec"},)"
            R"({"id":10,"name":"cycles","clock":true,"format":"uint32"},)"
            R"({"id":11,"name":"stdout","clock":"clk"},{"id":12,"name":"fast","clock":"cycles"},)"
            R"({"id":13,"name":"remarks","stream":"stdout","format":"annotate/utf-8"},)"
            R"({"id":14,"name":"fast notes","stream":"fast","format":"annotate/uint8"},)"
            R"({"id":15,"name":"notes","format":"annotate/utf-8"},16])");
  std::vector<uint8_t> payload(kTimespecBytes);
  encode_timespec_ns(1500000000,
                     std::span<uint8_t, kTimespecBytes>(payload.data(), kTimespecBytes));
  payload.push_back('!');
  for (const uint64_t id : {13, 14, 15}) made.frame(id, payload);
  made.frame(15, Bytes(payload).first(11)).frame(11, payload).crc();
  auto reader = Reader::open(made.bytes);
  Object object;
  const auto next = [&] {
    EXPECT_TRUE(reader->next(object));
    return reader->annotation(object);
  };
  auto note = next();
  ASSERT_TRUE(note.ok());
  EXPECT_EQ(note->time_ns, 1500000000);
  EXPECT_EQ(note->about->name, "stdout");
  EXPECT_TRUE(note->since_epoch);
  EXPECT_EQ(note->format.kind, FormatKind::kUtf8);
  EXPECT_EQ(std::string(note->body.begin(), note->body.end()), "!");
  note = next();
  EXPECT_EQ(note->about->name, "fast");
  EXPECT_FALSE(note->since_epoch);
  EXPECT_EQ(note->format.bits, 8);
  note = next();
  EXPECT_EQ(note->about, nullptr);
  EXPECT_TRUE(note->since_epoch);
  EXPECT_EQ(next().code(), Code::kDamaged);
  EXPECT_EQ(next().code(), Code::kInvalidArgument);
}

TEST(RtcChecksum, IsThePublishedWriters) {
  EXPECT_EQ(published_checksum(bytes_of("123456789")), 0x7EAD5C77u);
  EXPECT_EQ(published_checksum({}), 0u);
  std::vector<uint8_t> bytes(1000);
  std::mt19937_64 random(3);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const uint32_t whole = published_checksum(bytes);
  for (size_t cut = 0; cut < 40; ++cut) {
    EXPECT_EQ(
        published_checksum(Bytes(bytes).subspan(cut), published_checksum(Bytes(bytes).first(cut))),
        whole);
  }
}

}  // namespace
}  // namespace collect::rtc
