// WIRE.md from "Metadata before records" to "Counters".
#include <fmt/core.h>

#include <array>

#include "proto/conformance/collectors/collector_checks.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr wire::Channel kControl = wire::CHANNEL_CONTROL;
constexpr wire::Channel kData = wire::CHANNEL_DATA;
constexpr uint32_t kStream = 1;
constexpr uint32_t kPage = 100;  // records
constexpr uint64_t kLost = 7;
constexpr milliseconds kLongestBeat{5'000};  // that a silent link is waited for

// Why no more came on data.
std::string came(const PlayedAgent& agent, const std::string& otherwise) {
  if (agent.data.refuse) return refusal_text(*agent.data.refuse);
  return agent.data.is_over ? "the connection ended" : otherwise;
}

Verdict stored(PlayedAgent& agent, uint64_t next) {
  if (agent.wait_stored(kStream, next)) return Verdict::ok();
  return Verdict::failed(fmt::format("an Ack of records below {}", next), came(agent, "none came"));
}

Verdict page_before_stream(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream + 1, 0, 1);
  return agent.refused(kData, wire::REFUSE_PROTOCOL);
}

Verdict stream_before_recording(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  agent.open_stream(kStream);
  return agent.refused(kData, wire::REFUSE_PROTOCOL);
}

Verdict repeats(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.start_recording(1);
  agent.send_module();
  agent.open_stream(kStream);
  agent.send_page(kStream, 0, kPage);
  return stored(agent, kPage);
}

Verdict acks(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  for (uint64_t first = 0; first < uint64_t{10} * kPage; first += kPage) {
    agent.send_page(kStream, first, kPage);
    const Verdict verdict = stored(agent, first + kPage);
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  if (agent.brought.ack_fault.empty()) return Verdict::ok();
  return Verdict::failed("positions that grow, up to what was sent", agent.brought.ack_fault);
}

// Records and breaks off after so many pages; what was acknowledged then.
Result<uint64_t> break_off(PlayedAgent& agent, uint64_t records) {
  COLLECT_TRY(agent.record());
  for (uint64_t first = 0; first < records; first += kPage) agent.send_page(kStream, first, kPage);
  if (!agent.wait_stored(kStream, records)) {
    return Error{Code::kUnavailable, "the pages were not acknowledged"};
  }
  agent.drop();
  return agent.brought.acked[kStream].index_next();
}

// Connects again; the position of the stream in Resume.
Result<wire::StreamPosition> come_back(PlayedAgent& agent) {
  wire::Hello hello = agent.hello(kData);
  hello.set_recording(1);
  hello.set_is_recording(true);
  COLLECT_TRY(agent.open_channel(kControl));
  COLLECT_TRY(agent.say_hello(kData, hello));
  COLLECT_TRY(agent.prove(kData));
  COLLECT_TRY(agent.expect_welcome(kData));
  for (const wire::StreamPosition& position : agent.resumed) {
    if (position.stream_id() == kStream) return position;
  }
  return Error{Code::kNotFound, "Resume does not name the stream"};
}

void announce(PlayedAgent& agent) {
  agent.start_recording(1);
  agent.send_module();
  agent.open_stream(kStream);
}

Verdict resume(const Target& target) {
  PlayedAgent agent(target);
  const auto acked = break_off(agent, 2 * kPage);
  if (!acked.ok()) return not_reached(acked.error());
  const auto position = come_back(agent);
  if (!position.ok()) return Verdict::failed("a Resume of the stream", position.error().message);
  if (!agent.data.welcome->resumed()) {
    return Verdict::failed("a Welcome with resumed", "it is not set");
  }
  if (position->index_next() < *acked || position->index_next() > 2 * kPage) {
    return Verdict::failed(fmt::format("a position from {} to 200", *acked),
                           fmt::format("it is {}", position->index_next()));
  }
  announce(agent);
  agent.send_page(kStream, 2 * kPage, kPage);
  return stored(agent, 3 * kPage);
}

Verdict page_twice(const Target& target) {
  PlayedAgent agent(target);
  const auto acked = break_off(agent, 2 * kPage);
  if (!acked.ok()) return not_reached(acked.error());
  if (const auto back = come_back(agent); !back.ok()) return not_reached(back.error());
  announce(agent);
  agent.send_page(kStream, kPage, 2 * kPage);  // half of it is stored
  const Verdict verdict = stored(agent, 3 * kPage);
  if (verdict.outcome != Outcome::kOk) return verdict;
  agent.drop();
  const auto position = come_back(agent);
  if (!position.ok()) return Verdict::failed("a Resume of the stream", position.error().message);
  if (position->index_next() == 3 * kPage) return Verdict::ok();
  return Verdict::failed("position 300 after records 0 to 299, of which 100 came twice",
                         fmt::format("it is {}", position->index_next()));
}

Verdict unknown_recording(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open_channel(kControl); !step.ok()) return not_reached(step);
  wire::Hello hello = agent.hello(kData);
  hello.set_recording(1);
  hello.set_is_recording(true);
  Status step = agent.say_hello(kData, hello);
  if (step.ok()) step = agent.prove(kData);
  if (step.ok()) step = agent.expect_welcome(kData);
  if (!step.ok()) return not_reached(step);
  if (!agent.data.welcome->resumed() && agent.resumed.empty()) return Verdict::ok();
  return Verdict::failed("resumed = false for a recording that the collector does not hold",
                         "Welcome says resumed");
}

bool is_closed(const PlayedAgent& agent) {
  const auto known = agent.brought.acked.find(kStream);
  return known != agent.brought.acked.end() && known->second.closed();
}

Verdict close_acked(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream, 0, kPage);
  agent.close_stream(kStream, kPage);
  if (!agent.wait([&] { return is_closed(agent); })) {
    return Verdict::failed("an Ack with closed", came(agent, "none came"));
  }
  agent.drop();
  agent.brought.acked[kStream].set_closed(false);
  const auto position = come_back(agent);
  if (!position.ok()) return Verdict::failed("a Resume of the stream", position.error().message);
  if (!position->closed()) return Verdict::failed("a Resume with closed", "it is not set");
  announce(agent);
  agent.close_stream(kStream, kPage);
  if (agent.wait([&] { return is_closed(agent); })) return Verdict::ok();
  return Verdict::failed("an Ack with closed for a repeated StreamClose", came(agent, "none came"));
}

Verdict fewer_at_close(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream, 0, kPage);
  agent.close_stream(kStream, kPage - 1);
  return agent.refused(kData, wire::REFUSE_PROTOCOL);
}

Verdict recording_ended(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream, 0, kPage);
  agent.close_stream(kStream, kPage);
  agent.end_recording();
  if (!agent.wait([&] { return agent.brought.recording_ended == 1; })) {
    return Verdict::failed("an Ack with recording_ended = 1", came(agent, "none came"));
  }
  agent.start_recording(1);
  agent.open_stream(kStream);
  agent.send_page(kStream, 0, kPage);
  agent.end_recording();
  if (agent.wait([&] { return agent.brought.recording_ended_count >= 2; })) return Verdict::ok();
  return Verdict::failed("recording_ended = 1 again for a recording that is sealed",
                         came(agent, "none came"));
}

Verdict losses(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  PageHeader dropped = page_header(kStream, 0, kPage);
  dropped.lost_reasons = kLostRingFull;
  dropped.lost_total = kLost;
  agent.send_encoded(dropped, index_records(0, kPage));
  PageHeader jump = page_header(kStream, kPage + kLost, kPage);  // the numbers before it are lost
  jump.lost_reasons = kLostOverwritten;
  jump.lost_total = kLost;
  agent.send_encoded(jump, index_records(kPage + kLost, kPage));
  PageHeader alone = page_header(kStream, 2 * kPage + kLost, 0);
  alone.lost_reasons = kLostReentry;
  alone.lost_total = 2 * kLost;
  agent.send_encoded(alone, {});
  return stored(agent, 2 * kPage + kLost);
}

wire::Stalls one_stall(uint32_t stream, uint64_t first_ns, uint64_t last_ns) {
  wire::Stalls stalls;
  wire::Stall* stall = stalls.add_stalls();
  stall->set_stream_id(stream);
  stall->set_kind(wire::Stall::PAGE_WAIT);
  stall->set_first_ns(first_ns);
  stall->set_last_ns(last_ns);
  return stalls;
}

Verdict stalls(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.send_page(kStream, 0, kPage);
  agent.data.link.send(FrameType::kStalls,
                       one_stall(kStream, record_ns(kPage), record_ns(2 * kPage)));
  agent.send_page(kStream, kPage, 1);
  const Verdict verdict = stored(agent, kPage + 1);
  if (verdict.outcome != Outcome::kOk) return verdict;
  if (agent.wait([&] { return agent.brought.stalls_next == 1; })) return Verdict::ok();
  return Verdict::skipped("the collector does not acknowledge stalls, as an older one");
}

Verdict stall_contradiction(const Target& target) {
  const wire::Stalls wrong[] = {one_stall(kStream + 1, 1, 2), one_stall(kStream, 2, 1)};
  for (const wire::Stalls& one : wrong) {
    PlayedAgent agent(target);
    if (const Status step = agent.record(); !step.ok()) return not_reached(step);
    agent.data.link.send(FrameType::kStalls, one);
    const Verdict verdict = agent.refused(kData, wire::REFUSE_PROTOCOL);
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  return Verdict::ok();
}

Verdict bye(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  agent.close_stream(kStream, 0);
  agent.end_recording();
  if (!agent.wait([&] { return agent.brought.recording_ended == 1; })) {
    return Verdict::skipped("not reached: the recording was not sealed");
  }
  agent.send_bye();
  if (!agent.wait_over(kControl)) {
    return Verdict::failed("that the collector closes control after Bye", "it stays open");
  }
  if (!agent.control.refuse) return Verdict::ok();
  return Verdict::failed("the end without a Refuse", refusal_text(*agent.control.refuse));
}

Verdict clock_probes(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  if (!agent.wait([&] { return agent.brought.probes.size() >= 2; })) {
    return Verdict::failed("ClockProbes after the Welcome on control",
                           fmt::format("{} came", agent.brought.probes.size()));
  }
  for (size_t i = 1; i < agent.brought.probes.size(); ++i) {
    if (agent.brought.probes[i].t1_ns() < agent.brought.probes[i - 1].t1_ns()) {
      return Verdict::failed("t1 that does not step back", "it does");
    }
  }
  return Verdict::ok();
}

milliseconds beat_of(const PlayedAgent& agent) {
  const uint32_t said = agent.control.welcome->heartbeat_ms();
  return milliseconds(said == 0 ? 1000 : said);
}

Verdict heartbeats(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  const milliseconds beat = beat_of(agent);
  if (beat > kLongestBeat) return Verdict::skipped(fmt::format("heartbeat_ms is {}", beat.count()));
  size_t before = 0;
  for (int i = 0; i < 3; ++i) {
    before = agent.brought.frames_at.size();
    if (!agent.wait([&] { return agent.brought.frames_at.size() > before; }, 3 * beat)) {
      return Verdict::failed("a frame on control in three intervals", "none came");
    }
  }
  return Verdict::ok();
}

Verdict silent_agent(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  const milliseconds beat = beat_of(agent);
  if (beat > kLongestBeat) return Verdict::skipped(fmt::format("heartbeat_ms is {}", beat.count()));
  agent.is_silent = true;
  if (agent.wait([&] { return agent.control.is_over && agent.data.is_over; },
                 3 * beat + target.settings.timeout)) {
    return Verdict::ok();
  }
  return Verdict::failed("that both connections of a silent agent are closed",
                         "they stay open after three intervals");
}

Verdict counters(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.record(); !step.ok()) return not_reached(step);
  wire::Counters counters;
  wire::Counter* counter = counters.add_counters();
  counter->set_name("conformance");
  counter->set_value(-5);
  counter->set_highest(5);
  agent.control.link.send(FrameType::kCounters, counters);
  return agent.goes_on();
}

constexpr std::string_view kMetadata = "Metadata before records";
constexpr std::string_view kAcks = "Acks and resume";

constexpr auto kChecks = std::to_array<CollectorCheck>({
    {{"page-before-stream", kMetadata, "a page of a stream that is not open is refused"},
     page_before_stream},
    {{"stream-before-recording", kMetadata, "a stream before its recording is refused"},
     stream_before_recording},
    {{"repeats", kMetadata, "RecordingStart, Modules and StreamOpen may come twice"}, repeats},
    {{"acks", kAcks, "positions grow, and never beyond what was sent"}, acks},
    {{"resume", kAcks, "Resume names what is stored, and recording continues there"}, resume},
    {{"page-twice", kAcks, "records that come twice are stored once"}, page_twice},
    {{"unknown-recording", kAcks, "a recording that is not held is not resumed"},
     unknown_recording},
    {{"close-acked", kAcks, "each StreamClose is acknowledged, also a repeated one"}, close_acked},
    {{"recording-ended", kAcks, "RecordingEnd is acknowledged, also a repeated one"},
     recording_ended},
    {{"losses", "Losses", "dropped and overwritten records, and a loss alone, are accepted"},
     losses},
    {{"fewer-at-close", "Losses", "a StreamClose with fewer records than came is refused"},
     fewer_at_close},
    {{"stalls", "Stalls", "stalls are acknowledged by their number"}, stalls},
    {{"stall-contradiction", "Stalls", "a stall that contradicts itself is refused"},
     stall_contradiction},
    {{"bye", "Ending", "the collector closes control after Bye"}, bye},
    {{"clock-probes", "Clock sync", "probes come after the Welcome on control"}, clock_probes},
    {{"heartbeats", "Heartbeats", "a frame comes in every interval"}, heartbeats},
    {{"silent-agent", "Heartbeats", "an agent that is silent for three intervals is closed"},
     silent_agent},
    {{"counters", "Counters", "counters are accepted"}, counters},
});

}  // namespace

std::span<const CollectorCheck> collector_recording_checks() {
  return kChecks;
}

}  // namespace collect::conformance
