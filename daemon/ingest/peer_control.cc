// The control channel of a peer: heartbeats, clock sync, commands, acks.
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>

#include "daemon/ingest/handshake.h"
#include "daemon/ingest/limits.h"
#include "daemon/ingest/peer.h"

namespace collect::ingest {
namespace {

std::vector<std::string> split_patterns(const std::string& text) {
  std::vector<std::string> patterns;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    if (end != begin) patterns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return patterns;
}

}  // namespace

void Peer::on_frame(Link& link, const wire::Frame& frame) {
  const uint64_t received_ns = boottime_ns();
  if (&link != control_.get()) return;
  control_heard_at_ = std::chrono::steady_clock::now();
  switch (frame.type) {
    case wire::FrameType::kHeartbeat:
      on_heartbeat(frame);
      return;
    case wire::FrameType::kCommandResult:
      on_command_result(frame);
      return;
    case wire::FrameType::kClockReply:
      on_clock_reply(frame, received_ns);
      return;
    case wire::FrameType::kBye:
      on_bye(frame);
      return;
    case wire::FrameType::kModules:
      on_loaded_modules(frame);
      return;
    case wire::FrameType::kWantFunctionFilter:
      on_want_function_filter(frame);
      return;
    case wire::FrameType::kCounters:
      on_counters(frame);
      return;
    case wire::FrameType::kRefuse: {
      const auto refusal = parsed<wire::Refuse>(frame);
      if (refusal) drop_links("refused by the agent: " + refusal->reason());
      return;
    }
    default:
      break;
  }
  const bool is_known =
      (frame.type >= wire::FrameType::kDial && frame.type <= wire::FrameType::kProof) ||
      (frame.type >= wire::FrameType::kRecordingStart && frame.type <= wire::FrameType::kStalls) ||
      (frame.type >= wire::FrameType::kAck && frame.type <= wire::FrameType::kCounters);
  if (is_known) {
    violation("frame type " + std::to_string(static_cast<unsigned>(frame.type)) +
              " does not belong on the control channel");
  }
}

void Peer::on_heartbeat(const wire::Frame& frame) {
  const auto beat = parsed<wire::Heartbeat>(frame);
  if (!beat) return;
  const auto mode = static_cast<DetailMode>(std::clamp<int>(beat->detail(), 0, 2));
  if (session_ && intake_ == Intake::kStore && beat->lost_without_stream() != 0 &&
      beat->recording() == session_->recording) {
    store_lost_without_stream(beat->lost_without_stream());
  }
  // Pages that go as they are make no news.
  const bool encodes = beat->link_raw_bytes() != beat->link_sent_bytes();
  const bool news = mode != agent_.detail || counters_changed_ ||
                    beat->spooled_bytes() != agent_.spooled_bytes ||
                    (encodes && beat->link_sent_bytes() != agent_.link_sent_bytes);
  agent_.link_raw_bytes = beat->link_raw_bytes();
  agent_.link_sent_bytes = beat->link_sent_bytes();
  agent_.spooled_bytes = beat->spooled_bytes();
  if (counters_changed_) agent_.counters = counter_watch_.values();
  counters_changed_ = false;
  if (!news) return;
  agent_.detail = mode;
  if (session_ && session_->shown.detail != mode) {
    session_->shown.detail = mode;
    session_->show(true);
  }
  show_agent();
}

// Before a recording, for the names in WantFunctionFilter. Later ones come on data.
void Peer::on_loaded_modules(const wire::Frame& frame) {
  const auto modules = parsed<wire::Modules>(frame);
  if (!modules) return;
  if ((agreed_features() & wire::kFeatureStartFilter) == 0 || session_ || filter_asked_) {
    violation("modules on the control channel, and no function filter is asked for");
    return;
  }
  if (modules->modules_size() > static_cast<int>(wire::kMaxModulesPerFrame)) {
    violation("more than 16 modules in one frame");
    return;
  }
  const std::vector<storage::ModuleInfo> infos = to_storage(*modules);
  if (!requested_memory_) requested_memory_.emplace(account_, principal::Resource::kMemory);
  const Status charged = requested_memory_->grow(memory_of(infos));
  if (!charged.ok()) {
    over_budget(charged.error().message);
  } else {
    take_modules(infos);
  }
}

void Peer::on_want_function_filter(const wire::Frame& frame) {
  const auto want = parsed<wire::WantFunctionFilter>(frame);
  if (!want) return;
  if ((agreed_features() & wire::kFeatureStartFilter) == 0 || filter_asked_) {
    violation("a function filter that was not agreed on, or is asked for twice");
    return;
  }
  if (want->only().size() > wire::kMaxFilterText || want->except().size() > wire::kMaxFilterText) {
    violation("the patterns of a function filter are longer than the protocol allows");
    return;
  }
  filter_asked_ = true;
  core_.observer.filter_wanted(
      agent_, {split_patterns(want->only()), split_patterns(want->except()), modules()});
}

void Peer::on_counters(const wire::Frame& frame) {
  const auto counters = parsed<wire::Counters>(frame);
  if (!counters) return;
  const Status taken = counter_watch_.take(*counters);
  if (!taken.ok()) {
    violation(taken.error().message);
    return;
  }
  counters_changed_ = true;  // shown at the next heartbeat
}

void Peer::on_bye(const wire::Frame& frame) {
  const auto bye = parsed<wire::Bye>(frame);
  if (!bye) return;
  said_goodbye_ = !bye->will_return();
  const std::string reason = "the agent said goodbye: " + bye->reason();
  if (data_up_) {
    drain_data(reason);
  } else {
    drop_links(reason);
  }
}

// ---- clock

void Peer::on_clock_reply(const wire::Frame& frame, uint64_t received_ns) {
  const auto reply = parsed<wire::ClockReply>(frame);
  if (reply) take_clock_sync(clock_probes_.take(*reply, received_ns, *control_));
}

void Peer::take_clock_sync(std::optional<storage::ClockSync> sync) {
  if (!sync) return;
  clock_sync_ = std::move(sync);
  if (session_) store_clock_sync();
}

// ---- commands

void Peer::command(wire::Command command, Answer<wire::CommandResult> done) {
  const std::string name = "agents/" + std::to_string(agent_.id);
  if (!connected()) {
    done(Error{Code::kUnavailable, name + " is not connected"});
    return;
  }
  if (commands_.is_full()) {
    done(Error{Code::kLimit, name + " has not answered " + std::to_string(kMaxPendingCommands) +
                                 " commands yet"});
    return;
  }
  command.set_command_id(commands_.add(std::move(done), std::chrono::steady_clock::now()));
  control_->send(wire::FrameType::kCommand, command);
}

void Peer::on_command_result(const wire::Frame& frame) {
  const auto result = parsed<wire::CommandResult>(frame);
  if (result) commands_.take(*result);
}

void Peer::fail_commands(const std::string& reason) {
  const std::vector<PendingStart> starts = std::exchange(starts_, {});
  commands_.fail_all(reason);
  for (const PendingStart& start : starts) start.done(Error{Code::kUnavailable, reason});
}

void Peer::sweep_commands(SteadyTime now) {
  const std::string reason = "agents/" + std::to_string(agent_.id) + " did not answer within " +
                             std::to_string(kCommandTimeout.count() / 1000) + " s";
  commands_.fail_late(now, reason);
  std::vector<Answer<SessionSnapshot>> late_starts;
  std::erase_if(starts_, [&](PendingStart& start) {
    if (start.deadline > now) return false;
    late_starts.push_back(std::move(start.done));
    return true;
  });
  for (const auto& done : late_starts) done(Error{Code::kUnavailable, reason});
}

void Peer::start_recording(Answer<SessionSnapshot> done) {
  if (session_) {
    done(Error{Code::kAlreadyExists, "agents/" + std::to_string(agent_.id) +
                                         " records already, into " + session_->shown.name});
    return;
  }
  wire::Command start;
  start.mutable_start_recording();
  const auto self = shared_from_this();
  command(std::move(start), [self, done](Result<wire::CommandResult> result) {
    if (!result.ok()) {
      done(result.error());
    } else if (!result->ok()) {
      done(Error{Code::kUnavailable, "the agent says: " + result->error()});
    } else {
      self->starts_.push_back(
          {result->recording(), done, std::chrono::steady_clock::now() + kCommandTimeout});
      self->answer_starts();
    }
  });
}

void Peer::stop_recording(Answer<SessionSnapshot> done) {
  if (!session_) {
    if (!sealing_.empty()) {
      sealing_.back()->when_sealed.push_back(std::move(done));
    } else {
      done(Error{Code::kNotFound, "agents/" + std::to_string(agent_.id) + " does not record now"});
    }
    return;
  }
  const SessionRef session = session_;
  session->when_sealed.push_back(std::move(done));
  if (!connected()) {
    finished_recording_ = std::max(finished_recording_, session->recording);
    seal(storage::SessionState::kRecovered, "stopped while its agent was disconnected");
    return;
  }
  if (session->stop_asked_at) return;
  session->stop_asked_at = std::chrono::steady_clock::now();
  wire::Command stop;
  stop.mutable_stop_recording();
  // The answer that counts is the end of the recording on data; the sweep has its deadline.
  command(std::move(stop), [](Result<wire::CommandResult>) {});
}

// ---- acks and time

void Peer::send_acks(const SessionReport& report) {
  if (!control_up_ || (report.stored.empty() && report.stalls_next == 0)) return;
  wire::Ack ack;
  ack.set_stalls_next(report.stalls_next);
  for (const auto& [stream, stored] : report.stored) {
    wire::StreamPosition* position = ack.add_positions();
    position->set_stream_id(stream);
    position->set_index_next(stored.index_next);
    position->set_detail_next(stored.detail_next);
    position->set_closed(stored.closed);
    if (ack.positions_size() < static_cast<int>(wire::kMaxAcksPerFrame)) continue;
    control_->send(wire::FrameType::kAck, ack);
    if (!control_up_) return;
    ack.Clear();
  }
  if (ack.positions_size() != 0 || ack.stalls_next() != 0) {
    control_->send(wire::FrameType::kAck, ack);
  }
}

void Peer::ack_recording_ended(uint32_t recording) {
  if (!control_up_) return;
  for (const SessionRef& session : sealing_) {
    if (session->recording == recording) return;  // said when it is sealed
  }
  wire::Ack ack;
  ack.set_recording_ended(recording);
  control_->send(wire::FrameType::kAck, ack);
}

void Peer::sweep_control(SteadyTime now) {
  const milliseconds heartbeat = core_.options.heartbeat;
  if (now - control_heard_at_ > heartbeat * kDeadAfterHeartbeats) {
    drop_links("nothing was received from the agent for " +
               std::to_string((heartbeat * kDeadAfterHeartbeats).count()) + " ms");
    return;
  }
  if (control_->sent_frames() != control_sent_frames_) {
    control_sent_frames_ = control_->sent_frames();
    control_sent_at_ = now;
  } else if (now - control_sent_at_ >= heartbeat / 2) {
    control_->send(wire::FrameType::kHeartbeat, wire::Heartbeat());
    control_sent_at_ = now;
  }
  if (!control_up_) return;
  take_clock_sync(clock_probes_.sweep(now));
  if (clock_probes_.is_due(now) && connected()) clock_probes_.begin_burst(*control_);
}

}  // namespace collect::ingest
