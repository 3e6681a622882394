// What one whole session of the program shows.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "proto/conformance/agents/agent_checks.h"

namespace collect::conformance {
namespace {

// The session's fault of the rule; ok where it was `reached`.
Verdict found(AgentBench& bench, const char* rule, const char* expected, bool reached) {
  const std::string fault = bench.session().faults.of(rule);
  if (!fault.empty()) return Verdict::failed(expected, fault);
  if (reached) return Verdict::ok();
  return Verdict::skipped("not reached: " + (bench.why_incomplete().empty()
                                                 ? std::string("the session had none")
                                                 : bench.why_incomplete()));
}

bool was_welcomed(const PlayedCollector& session, wire::Channel channel) {
  const auto* connection = session.connection(channel);
  return connection != nullptr && connection->stage == PlayedCollector::Stage::kWelcomed;
}

bool were_welcomed(AgentBench& bench) {
  const PlayedCollector& session = bench.session();
  return was_welcomed(session, wire::CHANNEL_CONTROL) && was_welcomed(session, wire::CHANNEL_DATA);
}

// Not when a damaged frame ended the session, perhaps before the answer.
bool could_answer(AgentBench& bench) {
  return were_welcomed(bench) && bench.session().faults.of("whole-frames").empty();
}

bool had_pages(AgentBench& bench) {
  return bench.session().watch.pages() != 0;
}

Verdict whole_frames(AgentBench& bench) {
  return found(bench, "whole-frames", "whole frames with right checksums, flags and reserved zero",
               bench.session().connections() != 0);
}

Verdict frame_places(AgentBench& bench) {
  return found(bench, "frame-places", "frames on the channel that WIRE.md says",
               were_welcomed(bench));
}

Verdict page_header(AgentBench& bench) {
  return found(bench, "page-header", "page headers with the flags and times of their records",
               had_pages(bench));
}

Verdict whole_records(AgentBench& bench) {
  return found(bench, "whole-records", "whole records of known kinds", had_pages(bench));
}

Verdict record_times(AgentBench& bench) {
  return found(bench, "record-times", "times that do not step back", had_pages(bench));
}

Verdict raw_pages(AgentBench& bench) {
  return found(bench, "page-codecs", "raw pages, where Welcome has no features", had_pages(bench));
}

Verdict opening(AgentBench& bench) {
  const PlayedCollector& session = bench.session();
  const std::string fault = session.faults.of("opening");
  const char* expected = "Hello, and Proof after Challenge, on two connections";
  if (!fault.empty()) return Verdict::failed(expected, fault);
  if (were_welcomed(bench)) return Verdict::ok();
  for (const char* other : {"whole-frames", "hello", "one-process"}) {
    if (!session.faults.of(other).empty()) {
      return Verdict::skipped("not reached: " + session.faults.of(other));
    }
  }
  return Verdict::failed(expected, bench.why_incomplete());
}

Verdict hello(AgentBench& bench) {
  return found(bench, "hello", "a Hello of version 2 with all that a process needs",
               bench.session().connection(wire::CHANNEL_CONTROL) != nullptr);
}

Verdict one_process(AgentBench& bench) {
  return found(bench, "one-process", "the same process_id on both channels",
               bench.session().connection(wire::CHANNEL_DATA) != nullptr);
}

Verdict fresh_nonces(AgentBench& bench) {
  return found(bench, "fresh-nonces", "a nonce of its own for each connection",
               bench.session().connection(wire::CHANNEL_DATA) != nullptr);
}

Verdict control_first(AgentBench& bench) {
  return found(bench, "control-first", "data after the Welcome on control",
               bench.session().connection(wire::CHANNEL_DATA) != nullptr);
}

Verdict data_waits(AgentBench& bench) {
  return found(bench, "data-waits", "nothing on data before its Welcome", were_welcomed(bench));
}

Verdict resume_proof(AgentBench& bench) {
  return found(bench, "resume-proof", "the proof of the resume key on data, and none before it",
               were_welcomed(bench));
}

Verdict token_proof(AgentBench& bench) {
  if (bench.settings().token.empty()) {
    return Verdict::skipped("without --token-file, the agent has no token that is known here");
  }
  return found(bench, "token-proof", "the agent's proof of the token", were_welcomed(bench));
}

Verdict recording_first(AgentBench& bench) {
  return found(bench, "recording-first", "RecordingStart before everything else on data",
               bench.session().watch.recording() != 0);
}

Verdict modules_first(AgentBench& bench) {
  return found(bench, "modules-first", "modules before the records that refer to them",
               had_pages(bench));
}

Verdict streams_first(AgentBench& bench) {
  return found(bench, "streams-first", "StreamOpen before the pages of a stream", had_pages(bench));
}

Verdict limits(AgentBench& bench) {
  return found(bench, "limits", "lists and strings within the limits", were_welcomed(bench));
}

Verdict record_numbers(AgentBench& bench) {
  return found(bench, "record-numbers", "record numbers without gaps and repeats",
               had_pages(bench));
}

Verdict lost_totals(AgentBench& bench) {
  return found(bench, "lost-totals", "lost_total that never shrinks", had_pages(bench));
}

Verdict stalls(AgentBench& bench) {
  return found(bench, "stalls", "stalls of open streams that end after they begin",
               were_welcomed(bench));
}

Verdict stream_close(AgentBench& bench) {
  const auto& streams = bench.session().watch.streams();
  const bool closed = std::any_of(streams.begin(), streams.end(),
                                  [](const auto& one) { return one.second.is_closed; });
  return found(bench, "stream-close", "StreamClose after the last page, with its counts", closed);
}

Verdict recording_end(AgentBench& bench) {
  const bool ended = bench.session().watch.has_ended();
  if (bench.session().bye && !ended && bench.session().watch.recording() != 0) {
    return Verdict::failed("RecordingEnd before Bye", "none came");
  }
  return found(bench, "recording-end", "RecordingEnd as the last frame of a recording", ended);
}

Verdict bye(AgentBench& bench) {
  const PlayedCollector& session = bench.session();
  if (session.watch.has_ended() && !session.bye && session.faults.of("whole-frames").empty()) {
    return Verdict::failed("Bye after the Ack of RecordingEnd", "none came");
  }
  if (!session.bye) return Verdict::skipped("not reached: " + bench.why_incomplete());
  if (bench.data_ended()) return Verdict::ok();
  return Verdict::failed("that the agent closes both connections when control is closed after Bye",
                         "data stays open");
}

Verdict commands(AgentBench& bench) {
  if (!could_answer(bench)) return Verdict::skipped("not reached: " + bench.why_incomplete());
  const auto& results = bench.session().results;
  const auto count = std::count_if(results.begin(), results.end(), [](const auto& one) {
    return one.command_id() == kFlushCommand;
  });
  if (count != 1) {
    return Verdict::failed("one CommandResult for Flush", fmt::format("{} came", count));
  }
  const auto result = std::find_if(results.begin(), results.end(), [](const auto& one) {
    return one.command_id() == kFlushCommand;
  });
  if (result->ok() || !result->error().empty()) return Verdict::ok();
  return Verdict::failed("ok or a sentence in error", "the CommandResult has neither");
}

Verdict unknown_command(AgentBench& bench) {
  if (!could_answer(bench)) return Verdict::skipped("not reached: " + bench.why_incomplete());
  for (const wire::CommandResult& result : bench.session().results) {
    if (result.command_id() != kUnknownCommand) continue;
    if (!result.ok() && !result.error().empty()) return Verdict::ok();
    return Verdict::failed("an error for a command that no version has",
                           result.ok() ? "ok came" : "there is no sentence in error");
  }
  return Verdict::failed("a CommandResult for a command that no version has", "none came");
}

Verdict clock_reply(AgentBench& bench) {
  if (!could_answer(bench)) return Verdict::skipped("not reached: " + bench.why_incomplete());
  const std::string fault = bench.session().faults.of("clock-reply");
  const char* expected = "a ClockReply for each probe, with its numbers, and t2 before t3";
  if (!fault.empty()) return Verdict::failed(expected, fault);
  if (bench.session().clock_replies != 0) return Verdict::ok();
  return Verdict::failed(expected, "none came");
}

Verdict heartbeats(AgentBench& bench) {
  return found(bench, "heartbeats", "a frame on control in every interval", were_welcomed(bench));
}

constexpr std::string_view kOpening = "Opening a connection";
constexpr std::string_view kMetadata = "Metadata before records";

constexpr auto kChecks = std::to_array<AgentCheck>({
    {{"whole-frames", "Frame header", "all frames of the agent are valid"}, whole_frames},
    {{"frame-places", "Frame types", "frames come on their channel"}, frame_places},
    {{"page-header", "Page header", "flags and times are those of the records"}, page_header},
    {{"whole-records", "Page header", "pages have whole records of known kinds"}, whole_records},
    {{"record-times", "Page header", "times of a lane do not step back"}, record_times},
    {{"raw-pages", "Page codecs", "pages are raw where no codec was agreed to"}, raw_pages},
    {{"opening", kOpening, "Hello comes first, Proof answers Challenge, on both channels"},
     opening},
    {{"hello", kOpening, "Hello has what WIRE.md asks for, and the same on both channels"}, hello},
    {{"one-process", kOpening, "both channels have the same process_id"}, one_process},
    {{"fresh-nonces", kOpening, "each connection has a nonce of its own"}, fresh_nonces},
    {{"control-first", kOpening, "data is opened after the Welcome on control"}, control_first},
    {{"data-waits", kOpening, "nothing comes on data between Proof and Welcome"}, data_waits},
    {{"resume-proof", "Proofs", "data has the proof of the resume key"}, resume_proof},
    {{"token-proof", "Proofs", "the agent proves that it knows the token"}, token_proof},
    {{"recording-first", kMetadata, "RecordingStart is the first frame on data"}, recording_first},
    {{"modules-first", kMetadata, "a module comes before records that refer to it"}, modules_first},
    {{"streams-first", kMetadata, "StreamOpen comes before the pages of a stream"}, streams_first},
    {{"record-numbers", "Acks and resume", "records are numbered from 0 without gaps"},
     record_numbers},
    {{"lost-totals", "Losses", "lost_total never shrinks"}, lost_totals},
    {{"stalls", "Stalls", "stalls belong to open streams and end after they begin"}, stalls},
    {{"stream-close", "Ending", "StreamClose counts the records that came"}, stream_close},
    {{"recording-end", "Ending", "RecordingEnd comes last"}, recording_end},
    {{"bye", "Ending", "Bye follows, and both connections end"}, bye},
    {{"commands", "Commands", "each Command has one CommandResult"}, commands},
    {{"unknown-command", "Commands", "an unknown command is answered with an error"},
     unknown_command},
    {{"clock-reply", "Clock sync", "each ClockProbe is answered"}, clock_reply},
    {{"heartbeats", "Heartbeats", "a frame comes on control in every interval"}, heartbeats},
    {{"limits", "Limits", "lists and strings are within the limits"}, limits},
});

}  // namespace

std::span<const AgentCheck> agent_session_checks() {
  return kChecks;
}

}  // namespace collect::conformance
