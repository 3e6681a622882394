// WIRE.md "Frame header", "Frame types", "Page header", "Page codecs".
#include <array>
#include <memory>

#include "proto/conformance/collectors/collector_checks.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr wire::Channel kControl = wire::CHANNEL_CONTROL;
constexpr wire::Channel kData = wire::CHANNEL_DATA;
constexpr auto kUnknownType = static_cast<FrameType>(999);
constexpr uint32_t kStream = 1;
constexpr size_t kFunctionOffset = 8;  // in a record

// A recording agent sends these bytes; the collector must refuse them as a protocol error.
Verdict refuses(const Target& target, wire::Channel channel, const Octets& bytes) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.channel(channel).link.send_bytes(bytes);
  return agent.refused(channel, wire::REFUSE_PROTOCOL);
}

// refuses() on both channels.
Verdict refuses_on_both(const Target& target, const Octets& bytes) {
  const Verdict control = refuses(target, kControl, bytes);
  if (control.outcome != Outcome::kOk) return control;
  return refuses(target, kData, bytes);
}

Octets heartbeat() {
  wire::Heartbeat beat;
  beat.set_recorded(1);
  return frame_bytes(FrameType::kHeartbeat, beat);
}

Verdict bad_magic(const Target& target) {
  Octets frame = heartbeat();
  frame[0] ^= 1;
  seal_header(frame);
  return refuses_on_both(target, frame);
}

Verdict bad_header_checksum(const Target& target) {
  Octets frame = heartbeat();
  frame[20] ^= 1;
  return refuses_on_both(target, frame);
}

Verdict bad_body_checksum(const Target& target) {
  Octets control = heartbeat();
  control.back() ^= 1;
  const Verdict verdict = refuses(target, kControl, control);
  if (verdict.outcome != Outcome::kOk) return verdict;
  Octets data = frame_bytes(FrameType::kModules, wire::Modules());
  data[12] ^= 1;
  seal_header(data);
  return refuses(target, kData, data);
}

// Its header alone, so that nothing but the length can be looked at.
Octets header_of(FrameType type, uint32_t body_bytes) {
  Octets frame = frame_bytes(type, Bytes());
  for (size_t i = 0; i < 4; ++i) frame[8 + i] = static_cast<uint8_t>(body_bytes >> (8 * i));
  seal_header(frame);
  return frame;
}

Verdict frame_too_long(const Target& target) {
  const Octets control = header_of(FrameType::kHeartbeat, wire::kMaxControlBody + 1);
  const Verdict verdict = refuses_on_both(target, control);
  if (verdict.outcome != Outcome::kOk) return verdict;
  return refuses(target, kData, header_of(FrameType::kPage, wire::kMaxPageBody + 1));
}

Verdict page_too_short(const Target& target) {
  return refuses(target, kData, header_of(FrameType::kPage, sizeof(PageHeader) - 1));
}

Verdict unknown_frame(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  const Octets unknown = frame_bytes(kUnknownType, wire::Heartbeat());
  agent.data.link.send_bytes(unknown);
  agent.send_page(kStream, 0, 4);
  if (!agent.wait_stored(kStream, 4)) {
    return Verdict::failed(
        "that a frame of an unknown type on data is skipped",
        agent.data.refuse ? refusal_text(*agent.data.refuse) : "no Ack of the page after it came");
  }
  agent.control.link.send_bytes(unknown);
  agent.send_bye();
  agent.wait_over(kControl);
  if (agent.control.refuse) {
    return Verdict::failed("that a frame of an unknown type on control is skipped",
                           refusal_text(*agent.control.refuse));
  }
  return Verdict::ok();
}

Verdict whole_frames(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream, 0, 4);
  agent.wait_stored(kStream, 4);
  agent.close_stream(kStream, 4);
  agent.end_recording();
  agent.wait([&] { return agent.brought.recording_ended == 1; });
  for (const PlayedAgent::Channel* channel : {&agent.control, &agent.data}) {
    if (!channel->fault.empty())
      return Verdict::failed("frames as WIRE.md has them", channel->fault);
  }
  return Verdict::ok();
}

Verdict wrong_channel(const Target& target) {
  const Verdict data = refuses(target, kData, heartbeat());
  if (data.outcome != Outcome::kOk) return data;
  return refuses(target, kControl, page_of(kStream, 0, 1));
}

Verdict wrong_side(const Target& target) {
  return refuses_on_both(target, frame_bytes(FrameType::kAck, wire::Ack()));
}

Verdict wrong_time(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.control.link.send(FrameType::kHello, agent.hello(kControl));
  return agent.refused(kControl, wire::REFUSE_PROTOCOL);
}

Verdict no_message(const Target& target) {
  const uint8_t broken[] = {0x0A, 0x7F, 0x01};  // field 1 is longer than the body
  const Verdict control =
      refuses(target, kControl, frame_bytes(FrameType::kHeartbeat, Bytes(broken)));
  if (control.outcome != Outcome::kOk) return control;
  return refuses(target, kData, frame_bytes(FrameType::kModules, Bytes(broken)));
}

Verdict page_header_checksum(const Target& target) {
  Octets frame = page_of(kStream, 0, 1);
  frame[sizeof(wire::FrameHeader) + 8] ^= 1;
  return refuses(target, kData, frame);
}

Verdict page_bytes_checksum(const Target& target) {
  Octets frame = page_of(kStream, 0, 1);
  frame[wire::kPagePrefixBytes + kFunctionOffset] ^= 1;  // which only the checksum can show
  return refuses(target, kData, frame);
}

Verdict page_contradiction(const Target& target) {
  PageHeader count = page_header(kStream, 0, 1);
  count.record_count = 2;  // of 32 bytes
  PageHeader lane = page_header(kStream, 0, 1);
  lane.lane = static_cast<Lane>(2);
  PageHeader overflow = page_header(kStream, ~uint64_t{0}, 1);
  for (const PageHeader& page : {count, lane, overflow}) {
    const Verdict verdict = refuses(target, kData, page_frame_bytes(page, index_records(0, 1)));
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  return Verdict::ok();
}

Verdict largest_page(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  constexpr uint32_t kMost = wire::kMaxPageBytes / kRecordBytes;
  agent.send_page(kStream, 0, kMost);
  if (agent.wait_stored(kStream, kMost)) return Verdict::ok();
  return Verdict::failed("an Ack of a page of 1,048,576 bytes",
                         agent.data.refuse ? refusal_text(*agent.data.refuse) : "none came");
}

Verdict codec_not_agreed(const Target& target) {
  PageHeader page = page_header(kStream, 0, 4);
  page.codec = Codec::kColumns;
  const Octets sent(40, 0);
  return refuses(target, kData, page_frame_bytes(page, sent));
}

Verdict columns(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open_channel(kControl); !step.ok()) return not_reached(step);
  wire::Hello hello = agent.hello(kData);
  hello.set_features(wire::kFeatureColumns);
  Status step = agent.say_hello(kData, hello);
  if (step.ok()) step = agent.prove(kData);
  if (step.ok()) step = agent.expect_welcome(kData);
  if (!step.ok()) return not_reached(step);
  if ((agent.data.welcome->features() & wire::kFeatureColumns) == 0) {
    return Verdict::skipped("the collector does not agree to codec 1");
  }
  constexpr uint32_t kCount = 512;
  const Octets records = index_records(0, kCount);
  Octets sent(records.size());
  const auto encoder = std::make_unique<wire::ColumnEncoder>();
  sent.resize(encoder->encode(Lane::kIndex, kCount, records, sent));
  PageHeader page = page_header(kStream, 0, kCount);
  page.codec = Codec::kColumns;
  agent.start_recording(1);
  agent.send_module();
  agent.open_stream(kStream);
  agent.send_encoded(page, sent);
  if (agent.wait_stored(kStream, kCount)) return Verdict::ok();
  return Verdict::failed("an Ack of a page of codec 1, which was agreed to",
                         agent.data.refuse ? refusal_text(*agent.data.refuse) : "none came");
}

constexpr auto kChecks = std::to_array<CollectorCheck>({
    {{"bad-magic", "Frame header", "a frame with another magic is refused"}, bad_magic},
    {{"bad-header-checksum", "Frame header", "a wrong header checksum is refused"},
     bad_header_checksum},
    {{"bad-body-checksum", "Frame header", "a wrong body checksum is refused"}, bad_body_checksum},
    {{"frame-too-long", "Frame header", "a length over the limit is refused before the body comes"},
     frame_too_long},
    {{"page-too-short", "Frame header", "a Page shorter than its header is refused"},
     page_too_short},
    {{"unknown-frame", "Frame header", "a frame of an unknown type is skipped"}, unknown_frame},
    {{"whole-frames", "Frame header", "all frames of the collector are valid, in their place"},
     whole_frames},
    {{"bad-message", "Frame header", "a body that is no message is refused"}, no_message},
    {{"wrong-channel", "Frame types", "a known frame on the wrong channel is refused"},
     wrong_channel},
    {{"wrong-side", "Frame types", "a frame that only a collector sends is refused"}, wrong_side},
    {{"wrong-time", "Frame types", "a second Hello on a connection is refused"}, wrong_time},
    {{"page-header-checksum", "Page header", "a changed page header is refused"},
     page_header_checksum},
    {{"page-bytes-checksum", "Page header", "changed bytes of a page are refused"},
     page_bytes_checksum},
    {{"page-contradiction", "Page header", "a page header that contradicts itself is refused"},
     page_contradiction},
    {{"largest-page", "Page header", "a page of 1,048,576 bytes is stored"}, largest_page},
    {{"codec-not-agreed", "Page codecs", "a page of a codec that was not agreed to is refused"},
     codec_not_agreed},
    {{"columns", "Page codecs", "a page of codec 1 is stored where it was agreed to"}, columns},
});

}  // namespace

std::span<const CollectorCheck> collector_frame_checks() {
  return kChecks;
}

}  // namespace collect::conformance
