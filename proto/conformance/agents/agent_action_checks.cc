// What an agent does when something is done to it: a program of its own for each.
#include <fmt/core.h>

#include <array>
#include <memory>
#include <utility>

#include "proto/conformance/agents/agent_checks.h"
#include "proto/wire/codec_rules.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr wire::Channel kControl = wire::CHANNEL_CONTROL;
constexpr wire::Channel kData = wire::CHANNEL_DATA;
constexpr auto kUnknownType = static_cast<FrameType>(999);
constexpr uint32_t kUnknownStream = 4'000'000'000;
constexpr uint64_t kBeyond = 1'000'000;  // records

Verdict not_reached(const Error& error) {
  return Verdict::skipped("not reached: " + error.message);
}

// One that does not acknowledge the end of a recording: so an agent whose program is short is there
// until something was done to it.
std::unique_ptr<PlayedCollector> waiting_collector(const AgentBench& bench) {
  auto collector = bench.collector();
  collector->acks_end = false;
  return collector;
}

// The agent gets these bytes on an open channel; it must refuse them as a protocol error.
Verdict refuses(AgentBench& bench, wire::Channel channel, const Octets& bytes) {
  auto played = bench.run_open(waiting_collector(bench));
  if (!played.ok()) return not_reached(played.error());
  (*played)->connection(channel)->link.send_bytes(bytes);
  return (*played)->refused(channel);
}

Octets heartbeat() {
  wire::Heartbeat beat;
  beat.set_recorded(1);
  return frame_bytes(FrameType::kHeartbeat, beat);
}

Verdict bad_magic(AgentBench& bench) {
  Octets frame = heartbeat();
  frame[0] ^= 1;
  seal_header(frame);
  return refuses(bench, kControl, frame);
}

Verdict bad_header_checksum(AgentBench& bench) {
  Octets frame = heartbeat();
  frame[20] ^= 1;
  return refuses(bench, kControl, frame);
}

Verdict bad_body_checksum(AgentBench& bench) {
  Octets frame = heartbeat();
  frame.back() ^= 1;
  return refuses(bench, kControl, frame);
}

Verdict frame_too_long(AgentBench& bench) {
  Octets frame = frame_bytes(FrameType::kHeartbeat, Bytes());
  const uint32_t length = wire::kMaxControlBody + 1;
  for (size_t i = 0; i < 4; ++i) frame[8 + i] = static_cast<uint8_t>(length >> (8 * i));
  seal_header(frame);
  return refuses(bench, kControl, frame);
}

Verdict wrong_channel(AgentBench& bench) {
  return refuses(bench, kData, frame_bytes(FrameType::kAck, wire::Ack()));
}

Verdict wrong_side(AgentBench& bench) {
  return refuses(bench, kControl, frame_bytes(FrameType::kClockReply, wire::ClockReply()));
}

Verdict unknown_frame(AgentBench& bench) {
  auto played = bench.run_open(waiting_collector(bench));
  if (!played.ok()) return not_reached(played.error());
  const Octets unknown = frame_bytes(kUnknownType, wire::Heartbeat());
  for (const wire::Channel channel : {kControl, kData}) {
    (*played)->connection(channel)->link.send_bytes(unknown);
  }
  return (*played)->goes_on();
}

Verdict page_codecs(AgentBench& bench) {
  auto collector = bench.collector();
  collector->features = wire::kCodecFeatures;
  auto played = bench.run_open(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  if ((own.connection(kData)->hello.features() & own.features) == 0) {
    return Verdict::skipped("the agent offers no page codec");
  }
  own.wait([&own] { return own.bye || !own.faults.of("whole-frames").empty(); }, kSessionBound);
  for (const char* rule : {"whole-frames", "page-codecs", "whole-records"}) {
    if (const std::string fault = own.faults.of(rule); !fault.empty()) {
      return Verdict::failed("pages that can be decoded", fault);
    }
  }
  if (own.watch.encoded_pages() != 0) return Verdict::ok();
  return Verdict::skipped("the agent sent no encoded page");
}

Verdict slow_opening(AgentBench& bench) {
  auto collector = waiting_collector(bench);
  collector->slow = true;
  auto played = bench.run(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  if (!(*played)->wait_open()) {
    const std::string why = (*played)->why_not_open();
    if ((*played)->connections() == 0) return Verdict::skipped("not reached: " + why);
    return Verdict::failed("that Challenge and Welcome may come byte by byte", why);
  }
  return (*played)->goes_on();
}

Verdict unasked_feature(AgentBench& bench) {
  auto collector = bench.collector();
  collector->unasked_features = uint64_t{1} << 63;
  auto played = bench.run(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  if (!own.wait([&own] { return own.connection(kControl) != nullptr; })) {
    return Verdict::skipped("not reached: " + own.why_not_open());
  }
  own.wait([&own] { return own.connection(kControl)->is_over || own.is_open(); });
  if (own.is_open()) {
    return Verdict::failed("that a Welcome with a feature that was not offered is refused",
                           "the agent continued");
  }
  return own.refused(kControl, wire::REFUSE_VERSION);
}

Verdict pair_ends(AgentBench& bench) {
  for (const wire::Channel ended : {kControl, kData}) {
    auto played = bench.run_open(waiting_collector(bench));
    if (!played.ok()) return not_reached(played.error());
    PlayedCollector& own = **played;
    PlayedCollector::Connection& other = *own.connection(ended == kControl ? kData : kControl);
    own.connection(ended)->link.close();
    own.connection(ended)->is_over = true;
    if (!own.wait([&other] { return other.is_over; })) {
      return Verdict::failed(
          "that both connections end with one of them",
          fmt::format("the other one of {} stays open", ended == kControl ? "control" : "data"));
    }
  }
  return Verdict::ok();
}

Verdict wrong_token(AgentBench& bench) {
  if (bench.settings().token.empty()) {
    return Verdict::skipped("without --token-file, the agent has no token that is known here");
  }
  auto collector = bench.collector();
  collector->wrong_token = true;
  auto played = bench.run(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  const auto settled = [&own] {
    const auto* one = own.connection(kControl);
    return one != nullptr && (one->is_over || one->stage == PlayedCollector::Stage::kWelcomed);
  };
  if (!own.wait(settled)) return Verdict::skipped("not reached: " + own.why_not_open());
  const PlayedCollector::Connection& control = *own.connection(kControl);
  const char* expected = "Refuse(TOKEN) for a wrong proof, before a Proof of its own";
  if (control.stage != PlayedCollector::Stage::kProof) {
    return Verdict::failed(expected, "Proof came");
  }
  if (!control.refuse) return Verdict::failed(expected, "the connection ended without a Refuse");
  if (control.refuse->code() == wire::REFUSE_TOKEN) return Verdict::ok();
  return Verdict::failed(expected, refusal_text(*control.refuse));
}

// Both connections break while nothing is acknowledged but the first half of what came.
Verdict resume(AgentBench& bench) {
  auto collector = waiting_collector(bench);
  collector->acks = false;
  auto played = bench.run_open(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  own.wait([&own] { return own.watch.records() >= 2 || !own.is_open(); });
  if (own.watch.records() < 2 || !own.is_open()) {
    return Verdict::skipped("not reached: no two records came in one recording");
  }
  own.wait([] { return false; }, kQuietBound);
  const wire::Ack sent = own.watch.ack();
  wire::Ack kept = sent;
  for (wire::StreamPosition& position : *kept.mutable_positions()) {
    position.set_index_next(position.index_next() / 2);
    position.set_detail_next(position.detail_next() / 2);
    position.set_closed(false);
  }
  own.drop();
  own.watch.forget_beyond(kept);
  own.kept = kept;
  own.acks = own.acks_end = true;
  const size_t before = own.connections();
  if (!own.wait([&] { return own.connections() > before; })) {
    return Verdict::skipped("the agent does not connect again, as \"A minimal agent\" allows");
  }
  if (!own.wait_open()) {
    return Verdict::failed("both channels again, with the proof of the resume key",
                           own.why_not_open());
  }
  const auto has_all = [&] {
    for (const wire::StreamPosition& position : sent.positions()) {
      const auto& lanes = own.watch.streams().at(position.stream_id()).lanes;
      if (lanes[0].next < position.index_next()) return false;
      if (lanes[1].next < position.detail_next()) return false;
    }
    return true;
  };
  const bool all = own.wait([&] { return has_all() || !own.is_open(); }) && has_all();
  for (const char* rule : {"resume", "resume-proof", "record-numbers", "streams-first",
                           "recording-first", "modules-first", "record-times"}) {
    if (const std::string fault = own.faults.of(rule); !fault.empty()) {
      return Verdict::failed("the metadata again, then the records from the positions of Resume",
                             fault);
    }
  }
  return all ? Verdict::ok()
             : Verdict::failed("all records again that were not acknowledged", "not all came");
}

Verdict ack_beyond(AgentBench& bench) {
  auto played = bench.run_open(waiting_collector(bench));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  own.wait([&own] { return own.watch.pages() != 0 || !own.is_open(); });
  wire::Ack ack = own.watch.ack();
  for (wire::StreamPosition& position : *ack.mutable_positions()) {
    position.set_index_next(position.index_next() + kBeyond);
  }
  ack.add_positions()->set_stream_id(kUnknownStream);
  own.connection(kControl)->link.send(FrameType::kAck, ack);
  return own.goes_on();
}

Verdict collector_bye(AgentBench& bench) {
  auto played = bench.run_open(waiting_collector(bench));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  PlayedCollector::Connection& control = *own.connection(kControl);
  PlayedCollector::Connection& data = *own.connection(kData);
  wire::Bye bye;
  bye.set_reason("the check is over");
  control.link.send(FrameType::kBye, bye);
  if (own.wait([&] { return control.is_over && data.is_over; })) return Verdict::ok();
  return Verdict::failed("that the agent closes both connections after the collector's Bye",
                         control.is_over ? "data stays open" : "control stays open");
}

Verdict silent_collector(AgentBench& bench) {
  auto collector = waiting_collector(bench);
  collector->beats = false;
  collector->acks = false;
  auto played = bench.run_open(std::move(collector));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  PlayedCollector::Connection& control = *own.connection(kControl);
  PlayedCollector::Connection& data = *own.connection(kData);
  if (own.wait([&] { return control.is_over && data.is_over; },
               3 * milliseconds(own.heartbeat_ms) + bench.settings().timeout)) {
    return Verdict::ok();
  }
  return Verdict::failed("that the agent closes both connections of a silent collector",
                         "they stay open after three intervals");
}

Verdict final_refusal(AgentBench& bench) {
  auto played = bench.run_open(waiting_collector(bench));
  if (!played.ok()) return not_reached(played.error());
  PlayedCollector& own = **played;
  PlayedCollector::Connection& control = *own.connection(kControl);
  PlayedCollector::Connection& data = *own.connection(kData);
  const size_t before = own.connections();
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_DETACHED);
  refuse.set_reason("the check is over");
  control.link.send(FrameType::kRefuse, refuse);
  control.link.close();
  control.is_over = true;
  if (!own.wait([&] { return data.is_over; })) {
    return Verdict::failed("that the agent closes data after a Refuse on control", "it stays open");
  }
  own.wait([&] { return own.connections() > before; }, 3 * kQuietBound);
  if (own.connections() == before) return Verdict::ok();
  return Verdict::failed("that the agent gives up after Refuse with retry = false",
                         "it connected again");
}

constexpr std::string_view kFrames = "Frame header";
constexpr std::string_view kOpening = "Opening a connection";

constexpr auto kChecks = std::to_array<AgentCheck>({
    {{"bad-magic", kFrames, "a frame with another magic is refused"}, bad_magic},
    {{"bad-header-checksum", kFrames, "a wrong header checksum is refused"}, bad_header_checksum},
    {{"bad-body-checksum", kFrames, "a wrong body checksum is refused"}, bad_body_checksum},
    {{"frame-too-long", kFrames, "a length over the limit is refused before the body comes"},
     frame_too_long},
    {{"unknown-frame", kFrames, "a frame of an unknown type is skipped"}, unknown_frame},
    {{"wrong-channel", "Frame types", "a known frame on the wrong channel is refused"},
     wrong_channel},
    {{"wrong-side", "Frame types", "a frame that only an agent sends is refused"}, wrong_side},
    {{"page-codecs", "Page codecs", "pages of agreed codecs can be decoded"}, page_codecs},
    {{"slow-opening", kOpening, "Challenge and Welcome may come byte by byte"}, slow_opening},
    {{"unasked-feature", kOpening, "a Welcome with a feature that was not offered is refused"},
     unasked_feature},
    {{"pair-ends", kOpening, "when one connection ends, the agent closes the other one"},
     pair_ends},
    {{"wrong-token", "Proofs", "a collector with a wrong proof is refused"}, wrong_token},
    {{"resume", "Acks and resume", "what is not acknowledged comes again after a break"}, resume},
    {{"ack-beyond", "Acks and resume", "an Ack beyond what was sent, or of no stream, is no error"},
     ack_beyond},
    {{"collector-bye", "Ending", "the agent closes both connections after the collector's Bye"},
     collector_bye},
    {{"silent-collector", "Heartbeats", "a collector that is silent for three intervals is closed"},
     silent_collector},
    {{"final-refusal", "Refusals", "an agent that is refused without retry gives up"},
     final_refusal},
});

}  // namespace

std::span<const AgentCheck> agent_action_checks() {
  return kChecks;
}

}  // namespace collect::conformance
