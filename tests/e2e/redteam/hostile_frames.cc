#include "tests/e2e/redteam/hostile_frames.h"

#include <cstddef>
#include <cstring>

#include "formats/core/bytes.h"
#include "formats/core/crc32.h"
#include "proto/wire/page_codec.h"

namespace collect::e2e {
namespace {

using wire::FrameType;

constexpr size_t kBodyBytesAt = 8;
constexpr size_t kBodyCrcAt = 12;
constexpr size_t kHeaderCrcAt = 20;

template <class Message>
Octets message_frame(FrameType type, const Message& message) {
  return frame_bytes(type, message.SerializeAsString());
}

// A page of ten events of stream 1 whose header says something else in one place.
template <class Change>
Octets page_that(uint64_t first_seq, Change change) {
  Octets bytes = page_bytes(1, first_seq, events(5000 + first_seq, 10));
  PageHeader page{};
  std::memcpy(&page, bytes.data() + sizeof(wire::FrameHeader), sizeof page);
  change(page);
  std::memcpy(bytes.data() + sizeof(wire::FrameHeader), &page, sizeof page);
  store_le(bytes.data() + kBodyCrcAt,
           crc32c(Bytes(bytes).subspan(sizeof(wire::FrameHeader), sizeof page)));
  seal_header(bytes);
  return bytes;
}

Octets text(const std::string& words) {
  return {words.begin(), words.end()};
}

void add_broken_headers(std::vector<HostileFrame>& frames) {
  frames.push_back({"an HTTP request", text("GET / HTTP/1.1\r\nHost: x\r\n\r\n")});
  frames.push_back({"a TLS ClientHello", {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc}});
  frames.push_back({"zeros", Octets(4096, 0)});
  frames.push_back({"ones", Octets(4096, 0xff)});
  Octets bytes = frame_bytes(FrameType::kHeartbeat, "");
  bytes[0] ^= 0x20;
  frames.push_back({"a magic that is nearly right", bytes});
  bytes = frame_bytes(FrameType::kHeartbeat, "");
  bytes[kHeaderCrcAt] ^= 1;
  frames.push_back({"a wrong header checksum", bytes});
  for (const uint32_t length : {0xFFFFFFFFu, 0x80000000u, 1u << 20, 65'537u}) {
    bytes = frame_bytes(FrameType::kHeartbeat, "");
    store_le(bytes.data() + kBodyBytesAt, length);
    seal_header(bytes);
    frames.push_back({"a control frame of " + std::to_string(length) + " bytes", bytes});
  }
  for (const uint32_t length : {0xFFFFFFFFu, wire::kMaxPageBytes + 73u, 71u, 0u}) {
    bytes = page_bytes(1, 0, {});
    store_le(bytes.data() + kBodyBytesAt, length);
    seal_header(bytes);
    bytes.resize(bytes.size() + 256);
    frames.push_back({"a page frame of " + std::to_string(length) + " bytes", bytes});
  }
}

void add_broken_bodies(std::vector<HostileFrame>& frames) {
  const wire::Hello greeting = hello(wire::CHANNEL_DATA, 1, std::string(16, 'x'));
  Octets bytes = message_frame(FrameType::kHello, greeting);
  bytes[kBodyCrcAt] ^= 1;
  seal_header(bytes);
  frames.push_back({"a wrong body checksum", bytes});
  for (const FrameType type :
       {FrameType::kHello, FrameType::kRecordingStart, FrameType::kModules, FrameType::kStreamOpen,
        FrameType::kStreamClose, FrameType::kDetailState, FrameType::kRecordingEnd,
        FrameType::kCommandResult, FrameType::kClockReply, FrameType::kHeartbeat, FrameType::kBye,
        FrameType::kWantFunctionFilter, FrameType::kCounters}) {
    frames.push_back({"type " + std::to_string(static_cast<int>(type)) + " that is no message",
                      frame_bytes(type, std::string(64, '\xff'))});
  }
  // Field 11, length-delimited, longer than what follows.
  frames.push_back({"a string that runs out of its message",
                    frame_bytes(FrameType::kHello, std::string("\x5a\xff\xff\xff\x0f", 5))});
}

void add_broken_pages(std::vector<HostileFrame>& frames, uint64_t first_seq) {
  const auto add = [&](const char* name, auto change) {
    frames.push_back({name, page_that(first_seq, change)});
  };
  frames.push_back({"a page with a wrong checksum of its bytes",
                    page_bytes(1, first_seq, events(9000, 10), true)});
  frames.push_back({"a page of an unknown stream", page_bytes(77, 0, events(9000, 10))});
  Octets bytes = page_bytes(1, first_seq, events(9000, 10));
  bytes[sizeof(wire::FrameHeader) + 30] ^= 1;
  frames.push_back({"a page header with a wrong checksum", bytes});
  frames.push_back({"a page whose times run backwards", page_bytes(1, first_seq, events(1, 10))});
  Octets records = events(9000 + first_seq, 10);
  records[24] = 99;
  frames.push_back({"a record of an unknown kind", page_bytes(1, first_seq, records)});
  add("a page of lane 7", [](PageHeader& page) { page.lane = Lane{7}; });
  add("a page of codec 9", [](PageHeader& page) { page.codec = Codec{9}; });
  add("a page with fewer records than bytes", [](PageHeader& page) { page.record_count = 3; });
  add("a page with more records than bytes",
      [](PageHeader& page) { page.record_count = 1u << 27; });
  add("a page that decodes to four gigabytes", [](PageHeader& page) { page.raw_bytes = ~0u; });
  const auto add_encoded = [&](const char* name, const Octets& sent, uint32_t count, Lane lane,
                               Codec codec = Codec::kColumns) {
    PageHeader page{};
    page.stream_id = 1;
    page.lane = lane;
    page.codec = codec;
    page.first_seq = lane == Lane::kIndex ? first_seq : 0;
    page.record_count = count;
    page.raw_bytes = count * 32;
    frames.push_back({name, page_frame(page, sent)});
  };
  Octets bomb{0x1f, 0, 1, 0};
  bomb.insert(bomb.end(), 5000, 255);
  add_encoded("an encoded page that is no LZ4 block", Octets(100, 0xA5), 10, Lane::kIndex);
  add_encoded("an encoded page of nothing", {}, 10, Lane::kIndex);
  add_encoded("an encoded page that is longer than its records", Octets(321, 0), 10, Lane::kIndex);
  add_encoded("an encoded page that decodes to more than it says", bomb, 10, Lane::kIndex);
  add_encoded("an encoded page of more than a megabyte", bomb, wire::kMaxPageBytes / 32 + 1,
              Lane::kIndex);
  bomb.resize(4 + (wire::kMaxPageBytes - 25) / 255);
  bomb.push_back((wire::kMaxPageBytes - 25) % 255);
  bomb.insert(bomb.end(), {0x50, 0, 0, 0, 0, 0});
  add_encoded("a megabyte of zeros as events", bomb, wire::kMaxPageBytes / 32, Lane::kIndex);
  add_encoded("a megabyte of zeros as details", bomb, wire::kMaxPageBytes / 32, Lane::kDetail);
  add_encoded("tuples of no kind", Octets(100, 0xA5), 10, Lane::kIndex, Codec::kTuples);
  add_encoded("tuples of nothing", {}, 10, Lane::kIndex, Codec::kTuples);
  add_encoded("tuples of details", Octets(100, 0), 10, Lane::kDetail, Codec::kTuples);
  // One tuple and no bits: 39 bytes and one more for each 128 records.
  Octets cheap(38 + wire::kMaxPageBytes / 32 / wire::kTupleBlock);
  cheap[0] = 1;
  add_encoded("a megabyte of one event in tuples", cheap, wire::kMaxPageBytes / 32, Lane::kIndex,
              Codec::kTuples);
  add("record numbers that overflow", [](PageHeader& page) { page.first_seq = ~uint64_t{0} - 3; });
}

}  // namespace

void seal_header(Octets& frame) {
  store_le(frame.data() + kHeaderCrcAt, crc32c(Bytes(frame).first(kHeaderCrcAt)));
}

std::vector<HostileFrame> broken_frames(uint64_t first_seq) {
  std::vector<HostileFrame> frames;
  add_broken_headers(frames);
  add_broken_bodies(frames);
  add_broken_pages(frames, first_seq);
  for (const Octets& bytes : {page_bytes(1, first_seq, events(9000 + first_seq, 1000)),
                              frame_bytes(FrameType::kHello, std::string(100, 'x'))}) {
    for (const size_t cut : {size_t{1}, size_t{4}, size_t{23}, size_t{24}, bytes.size() - 1}) {
      frames.push_back({"the first " + std::to_string(cut) + " of " + std::to_string(bytes.size()) +
                            " bytes of a frame",
                        {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(cut)},
                        true});
    }
  }
  return frames;
}

std::vector<HostileFrame> misplaced_frames(wire::Channel channel) {
  std::vector<HostileFrame> frames;
  const auto add = [&frames](const char* name, FrameType type, const auto& message) {
    frames.push_back({name, message_frame(type, message)});
  };
  add("a Welcome from the agent", FrameType::kWelcome, wire::Welcome());
  add("a Resume from the agent", FrameType::kResume, wire::Resume());
  add("an Ack from the agent", FrameType::kAck, wire::Ack());
  add("a Command from the agent", FrameType::kCommand, wire::Command());
  add("a ClockProbe from the agent", FrameType::kClockProbe, wire::ClockProbe());
  add("a Dial from the agent", FrameType::kDial, wire::Dial());
  add("a Challenge from the agent", FrameType::kChallenge, wire::Challenge());
  wire::Proof late;
  late.set_resume_proof(std::string(32, 'p'));
  add("a Proof that no one asked for", FrameType::kProof, late);
  add("a second Hello", FrameType::kHello, hello(channel, 1, std::string(16, 'x')));
  if (channel == wire::CHANNEL_DATA) {
    add("a Heartbeat on data", FrameType::kHeartbeat, wire::Heartbeat());
    add("a CommandResult on data", FrameType::kCommandResult, wire::CommandResult());
    add("a Bye on data", FrameType::kBye, wire::Bye());
    add("a WantFunctionFilter on data", FrameType::kWantFunctionFilter, wire::WantFunctionFilter());
    wire::RecordingStart zero;
    add("recording 0", FrameType::kRecordingStart, zero);
    zero.set_recording(9);
    zero.set_atf_version(7);
    add("a recording of another ATF version", FrameType::kRecordingStart, zero);
    wire::StreamOpen open;
    open.set_recording(99);
    open.set_stream_id(5);
    add("a stream of a recording that did not begin", FrameType::kStreamOpen, open);
    wire::StreamClose close;
    close.set_stream_id(99);
    add("the close of a stream that is not open", FrameType::kStreamClose, close);
    wire::RecordingEnd end;
    end.set_recording(99);
    add("the end of a recording that did not begin", FrameType::kRecordingEnd, end);
    wire::Modules many;
    for (uint32_t i = 0; i < 17; ++i) many.add_modules()->set_module_id(i);
    add("17 modules in a frame", FrameType::kModules, many);
    wire::Modules wide;
    wide.add_modules()->set_path(std::string(5000, '/'));
    add("a module with a path of 5000 bytes", FrameType::kModules, wide);
  } else {
    add("a RecordingStart on control", FrameType::kRecordingStart, wire::RecordingStart());
    add("a StreamOpen on control", FrameType::kStreamOpen, wire::StreamOpen());
    add("Modules on control", FrameType::kModules, wire::Modules());
    add("a WantFunctionFilter that was not agreed on", FrameType::kWantFunctionFilter,
        wire::WantFunctionFilter());
    add("a RecordingEnd on control", FrameType::kRecordingEnd, wire::RecordingEnd());
    frames.push_back({"a page on control", page_bytes(1, 0, events(1, 10))});
  }
  return frames;
}

}  // namespace collect::e2e
