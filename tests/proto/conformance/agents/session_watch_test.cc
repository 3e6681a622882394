// What the watch of a session says of each thing that an agent can do wrongly on data, and that it
// says nothing of what is right.
#include "proto/conformance/agents/session_watch.h"

#include <gtest/gtest.h>

#include "formats/core/crc32.h"
#include "proto/conformance/collectors/sent_records.h"
#include "proto/wire/page_codec.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr const char* kRules[] = {
    "whole-frames",   "frame-places",    "page-header",   "whole-records", "record-times",
    "page-codecs",    "recording-first", "modules-first", "streams-first", "limits",
    "record-numbers", "lost-totals",     "stalls",        "stream-close",  "recording-end"};

class SessionWatchTest : public ::testing::Test {
 protected:
  SessionWatchTest() {
    wire::Hello hello;
    hello.set_atf_version(2);
    watch_.begin(hello, 0);
  }

  void take(FrameType type, const google::protobuf::MessageLite& message) {
    ReceivedFrame frame;
    frame.type = type;
    const std::string body = message.SerializeAsString();
    frame.body.assign(body.begin(), body.end());
    watch_.on_frame(frame);
  }
  void take_page(const PageHeader& page, const Octets& bytes) {
    ReceivedFrame frame;
    frame.type = FrameType::kPage;
    frame.page = page;
    frame.page_bytes = bytes;
    watch_.on_frame(frame);
  }
  void take_records(uint64_t first, uint32_t count) {
    take_page(page_header(1, first, count), index_records(first, count));
  }
  void start() {
    wire::RecordingStart begin;
    begin.set_recording(1);
    begin.set_atf_version(2);
    take(FrameType::kRecordingStart, begin);
  }
  void add_module(uint32_t id = 0) {
    wire::Modules modules;
    modules.add_modules()->set_module_id(id);
    take(FrameType::kModules, modules);
  }
  void open(uint32_t recording = 1) {
    wire::StreamOpen stream;
    stream.set_recording(recording);
    stream.set_stream_id(1);
    take(FrameType::kStreamOpen, stream);
  }
  void begin() {
    start();
    add_module();
    open();
  }
  void close(uint64_t count, uint64_t lost = 0) {
    wire::StreamClose stream;
    stream.set_stream_id(1);
    stream.set_index_count(count);
    stream.set_index_lost(lost);
    take(FrameType::kStreamClose, stream);
  }
  void end(uint32_t recording = 1) {
    wire::RecordingEnd ended;
    ended.set_recording(recording);
    take(FrameType::kRecordingEnd, ended);
  }

  // Nothing but this rule was broken.
  void expect_only(const std::string& broken) const {
    for (const char* rule : kRules) {
      if (rule == broken) {
        EXPECT_NE(faults_.of(rule), "") << rule;
      } else {
        EXPECT_EQ(faults_.of(rule), "") << rule;
      }
    }
  }

  Faults faults_;
  SessionWatch watch_{faults_};
};

TEST_F(SessionWatchTest, WholeSessionHasNoFault) {
  begin();
  take_records(0, 100);
  take_records(100, 50);
  EXPECT_EQ(watch_.ack().positions(0).index_next(), 150U);
  close(150);
  EXPECT_TRUE(watch_.ack().positions(0).closed());
  end();
  EXPECT_TRUE(watch_.has_ended());
  EXPECT_EQ(watch_.records(), 150U);
  expect_only("");
}

TEST_F(SessionWatchTest, UnknownFramesAreNoFault) {
  take(static_cast<FrameType>(999), wire::Heartbeat());
  expect_only("");
}

TEST_F(SessionWatchTest, FrameOfControlIsAFault) {
  begin();
  take(FrameType::kHeartbeat, wire::Heartbeat());
  expect_only("frame-places");
}

TEST_F(SessionWatchTest, ModulesBeforeTheRecordingAreAFault) {
  add_module();
  expect_only("recording-first");
}

TEST_F(SessionWatchTest, BodyThatIsNoMessageIsAFault) {
  begin();
  ReceivedFrame frame;
  frame.type = FrameType::kModules;
  frame.body = {0x0A, 0x7F, 0x01};
  watch_.on_frame(frame);
  expect_only("whole-frames");
}

TEST_F(SessionWatchTest, PageBeforeItsStreamIsAFault) {
  start();
  add_module();
  take_records(0, 10);
  expect_only("streams-first");
}

TEST_F(SessionWatchTest, ModuleThatWasNotSentIsAFault) {
  start();
  add_module(7);
  open();
  take_records(0, 10);
  expect_only("modules-first");
}

TEST_F(SessionWatchTest, CodeOfNoModuleIsNone) {
  start();
  open();
  Octets records = index_records(0, 1);
  for (size_t i = 12; i < 16; ++i) records[i] = 0xFF;
  take_page(page_header(1, 0, 1), records);
  expect_only("");
}

TEST_F(SessionWatchTest, GapInTheNumbersIsAFault) {
  begin();
  take_records(0, 10);
  take_records(11, 10);
  expect_only("record-numbers");
}

TEST_F(SessionWatchTest, GapOfOverwrittenRecordsIsNone) {
  begin();
  take_records(0, 10);
  PageHeader page = page_header(1, 15, 10);
  page.lost_reasons = kLostOverwritten;
  take_page(page, index_records(15, 10));
  close(25);
  expect_only("");
}

TEST_F(SessionWatchTest, RepeatedNumbersAreAFault) {
  begin();
  take_records(0, 10);
  PageHeader page = page_header(1, 9, 10);
  page.first_ns = record_ns(10);
  page.last_ns = record_ns(19);
  take_page(page, index_records(10, 10));
  expect_only("record-numbers");
}

TEST_F(SessionWatchTest, TimeThatStepsBackIsAFault) {
  begin();
  take_records(0, 10);
  PageHeader page = page_header(1, 10, 10);
  page.first_ns = record_ns(0);
  page.last_ns = record_ns(9);
  take_page(page, index_records(0, 10));
  expect_only("record-times");
}

TEST_F(SessionWatchTest, PageHeaderHasTheTimesOfItsRecords) {
  begin();
  PageHeader page = page_header(1, 0, 10);
  page.last_ns += 1;
  take_page(page, index_records(0, 10));
  expect_only("page-header");
}

TEST_F(SessionWatchTest, EventOfNoKindIsAFault) {
  begin();
  Octets records = index_records(0, 10);
  records[24] = 4;
  take_page(page_header(1, 0, 10), records);
  expect_only("whole-records");
}

TEST_F(SessionWatchTest, DetailRecordsAreWhole) {
  begin();
  PageHeader page = page_header(1, 0, 1);
  page.lane = collect::Lane::kDetail;
  Octets record(40, 0);
  record[0] = 40;
  page.raw_bytes = 40;
  page.first_ns = page.last_ns = 0;
  take_page(page, record);
  expect_only("");
  page.first_seq = 1;
  record[0] = 41;  // longer than the page
  take_page(page, record);
  expect_only("whole-records");
}

TEST_F(SessionWatchTest, CodecThatWasNotAgreedToIsAFault) {
  constexpr uint32_t kCount = 512;
  const Octets records = index_records(0, kCount);
  Octets sent(records.size());
  wire::ColumnEncoder encoder;
  sent.resize(encoder.encode(collect::Lane::kIndex, kCount, records, sent));
  PageHeader page = page_header(1, 0, kCount);
  page.codec = Codec::kColumns;
  wire::Hello hello;
  hello.set_atf_version(2);
  watch_.begin(hello, wire::kFeatureColumns);
  begin();
  take_page(page, sent);
  expect_only("");
  EXPECT_EQ(watch_.encoded_pages(), 1U);
  watch_.begin(hello, 0);
  begin();
  page.first_seq = kCount;
  page.first_ns = record_ns(0);
  take_page(page, sent);
  EXPECT_NE(faults_.of("page-codecs"), "");
}

TEST_F(SessionWatchTest, LostTotalThatShrinksIsAFault) {
  begin();
  PageHeader page = page_header(1, 0, 10);
  page.lost_total = 5;
  take_page(page, index_records(0, 10));
  take_records(10, 10);
  expect_only("lost-totals");
}

TEST_F(SessionWatchTest, CloseCountsWhatCame) {
  begin();
  take_records(0, 10);
  close(9);
  expect_only("stream-close");
}

TEST_F(SessionWatchTest, PageAfterTheCloseIsAFault) {
  begin();
  close(0);
  take_records(0, 10);
  expect_only("stream-close");
}

TEST_F(SessionWatchTest, EndBeforeTheCloseIsAFault) {
  begin();
  end();
  expect_only("stream-close");
}

TEST_F(SessionWatchTest, FrameAfterTheEndIsAFault) {
  begin();
  close(0);
  end();
  add_module();
  expect_only("recording-end");
}

TEST_F(SessionWatchTest, SeventeenModulesInAFrameAreAFault) {
  begin();
  wire::Modules modules;
  for (uint32_t id = 0; id <= wire::kMaxModulesPerFrame; ++id) {
    modules.add_modules()->set_module_id(id);
  }
  take(FrameType::kModules, modules);
  expect_only("limits");
}

TEST_F(SessionWatchTest, StallThatEndsBeforeItBeginsIsAFault) {
  begin();
  wire::Stalls stalls;
  stalls.add_stalls()->set_first_ns(1);
  take(FrameType::kStalls, stalls);
  expect_only("stalls");
}

TEST_F(SessionWatchTest, RecordsComeAgainFromThePositionOfResume) {
  begin();
  take_records(0, 20);
  wire::Ack kept = watch_.ack();
  kept.mutable_positions(0)->set_index_next(10);
  watch_.forget_beyond(kept);
  wire::Hello hello;
  hello.set_atf_version(2);
  watch_.begin(hello, 0);
  begin();
  take_records(8, 22);  // a page may overlap what is stored
  close(30);
  end();
  expect_only("");
  EXPECT_EQ(watch_.ack().positions(0).index_next(), 30U);
}

TEST_F(SessionWatchTest, RecordThatComesAgainIsTheSame) {
  begin();
  take_records(0, 20);
  wire::Ack kept = watch_.ack();
  kept.mutable_positions(0)->set_index_next(10);
  watch_.forget_beyond(kept);
  wire::Hello hello;
  hello.set_atf_version(2);
  watch_.begin(hello, 0);
  begin();
  Octets records = index_records(10, 10);
  take_page(page_header(1, 10, 10), records);
  EXPECT_EQ(faults_.of("resume"), "");
  watch_.forget_beyond(kept);
  records[8] ^= 1;  // of another function
  take_page(page_header(1, 10, 10), records);
  EXPECT_NE(faults_.of("resume"), "");
}

TEST_F(SessionWatchTest, RecordsThatDoNotComeAgainAreAFault) {
  begin();
  take_records(0, 20);
  wire::Ack kept = watch_.ack();
  kept.mutable_positions(0)->set_index_next(10);
  watch_.forget_beyond(kept);
  wire::Hello hello;
  hello.set_atf_version(2);
  watch_.begin(hello, 0);
  begin();
  take_records(20, 10);
  expect_only("record-numbers");
}

}  // namespace
}  // namespace collect::conformance
