// What `dump` prints of a dial9 stream for people.
#include "daemon/ctl/captures/dial9_dump.h"
#include "daemon/ctl/captures/capture_format.h"

#include <gtest/gtest.h>

#include <sstream>

#include "formats/dial9/writer.h"

namespace collect::ctl {
namespace {

using dial9::EventType;
using dial9::FieldType;

std::string dumped(Bytes stream, const DumpOptions& options = {}) {
  std::ostringstream text;
  TextOut out(text);
  // Words of numbers alone.
  const auto window = select::window_of(options.when, [] { return select::SessionTimes(); });
  EXPECT_TRUE(dump_dial9(options, *window, stream, out, {}).ok());
  out.flush();
  return text.str();
}

// A type with annotated fields, and one whose events have no time.
std::vector<uint8_t> stream_with_units() {
  dial9::Encoder encoder;
  const EventType usage = *encoder.define({256,
                                           "ResourceUsage",
                                           true,
                                           {{"user_cpu_ns", FieldType::kVarint},
                                            {"max_rss", FieldType::kU32, true},
                                            {"name", FieldType::kString}}});
  const EventType plain = *encoder.define({257, "Plain", false, {{"n", FieldType::kI64}}});
  EXPECT_TRUE(encoder
                  .annotate(usage, {{0, "unit", "ns"},
                                    {0, "kind", "counter"},
                                    {1, "metrique.unit", "bytes"},
                                    {2, "unit", "s"}})
                  .ok());
  encoder.begin_event(usage, 1'000'000'002);
  encoder.put_varint(7);
  encoder.put_u32(4096);
  encoder.put_string("a \"b\"\x1b");
  EXPECT_TRUE(encoder.end_event());
  encoder.begin_event(plain);
  encoder.put_i64(INT64_MIN);
  EXPECT_TRUE(encoder.end_event());
  encoder.begin_event(usage, 1'000'000'003);
  encoder.put_varint(8);
  encoder.put_absent();
  encoder.put_string("");
  EXPECT_TRUE(encoder.end_event());
  return encoder.take();
}

TEST(Dial9Dump, ShowsUnitsAndTimesEventsWithoutOne) {
  EXPECT_EQ(dumped(stream_with_units()),
            "1.000000002  ResourceUsage  user_cpu_ns=7ns max_rss=4096bytes "
            "name=\"a \\\"b\\\"\\x1b\"\n"
            "1.000000002  Plain  n=-9223372036854775808\n"
            "1.000000003  ResourceUsage  user_cpu_ns=8ns max_rss=- name=\"\"\n");
}

TEST(Dial9Dump, WindowTakesEventsWithoutTimeByTheirPredecessor) {
  const auto lines = [](const DumpOptions& options) {
    const std::string text = dumped(stream_with_units(), options);
    return std::count(text.begin(), text.end(), '\n');
  };
  DumpOptions window;
  window.when.from = "1000000003";
  EXPECT_EQ(lines(window), 1);
  window = {};
  window.when.until = "1000000002";
  EXPECT_EQ(lines(window), 2);
  window.when.until = "1000000001";
  EXPECT_EQ(lines(window), 0);
}

// In a file as in a session: what dump_capture() makes of the words.
TEST(Dial9Dump, WindowSinceTheFirstEvent) {
  const auto stream = stream_with_units();
  DumpOptions options;
  options.when.from = "1ns";
  std::ostringstream out, err;
  EXPECT_EQ(dump_capture(kDial9Capture, options, "x.bin", stream, out, err), 0) << err.str();
  EXPECT_EQ(out.str(), "1.000000003  ResourceUsage  user_cpu_ns=8ns max_rss=- name=\"\"\n");
  options.when.from = "14:03:00";
  EXPECT_EQ(dump_capture(kDial9Capture, options, "x.bin", stream, out, err), 2);
  EXPECT_EQ(
      err.str(),
      "collectctl: x.bin: --from: \"14:03:00\": the capture does not say what time of day it was "
      "recorded; write the time since its start, as 2.5s\n");
}

// Annotations may follow the first events; schemas and units end with their sub-stream.
TEST(Dial9Dump, UnitsApplyAfterTheirAnnotationInOneSubStream) {
  dial9::Encoder encoder;
  EventType type = *encoder.define({0, "T", true, {{"v", FieldType::kU8}}});
  const auto put = [&](dial9::Encoder& out, uint8_t value) {
    out.begin_event(type, value);
    out.put_u8(value);
    EXPECT_TRUE(out.end_event());
  };
  put(encoder, 1);
  ASSERT_TRUE(encoder.annotate(type, {{0, "unit", "ms\x1b[0m and more than fits"}}).ok());
  put(encoder, 2);
  std::vector<uint8_t> bytes = encoder.take();
  dial9::Encoder other;
  type = *other.define({0, "U", true, {{"w", FieldType::kU8}}});
  put(other, 3);
  const auto more = other.take();
  bytes.insert(bytes.end(), more.begin(), more.end());
  EXPECT_EQ(dumped(bytes),
            "0.000000001  T  v=1\n"
            "0.000000002  T  v=2ms\\x1b[0m and…\n"
            "0.000000003  U  w=3\n");
}

}  // namespace
}  // namespace collect::ctl
