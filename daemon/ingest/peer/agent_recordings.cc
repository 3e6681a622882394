#include "daemon/ingest/peer/agent_recordings.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/ingest/clock/clock_fit.h"
#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/wire_values.h"
#include "storage/model/seal_reason.h"

namespace collect::ingest {

AgentRecordings::AgentRecordings(IngestCore& core, asio::io_context& io, AgentProfile& profile,
                                 AgentConnection& connection, LoadedModules& modules,
                                 const storage::ResumeKey& key)
    : core_(core),
      io_(io),
      profile_(profile),
      connection_(connection),
      modules_(modules),
      resume_key_(key) {}

AgentSession* AgentRecordings::storing() const {
  return current_ && current_->recording == incoming_ ? current() : nullptr;
}

void AgentRecordings::restart(std::shared_ptr<AgentDecoder> decoder) {
  decoder_ = std::move(decoder);
  take_in(0);
}

void AgentRecordings::take_in(uint32_t recording) {
  if (decoder_) decoder_->begin_recording(recording);
  incoming_ = recording;
  connection_.on_storing_changed();
}

// ---- begin and end

Verdict AgentRecordings::take(const wire::Frame& frame) {
  return frame.type == wire::FrameType::kRecordingStart
             ? verdict_on(frame, *this, &AgentRecordings::on_start)
             : verdict_on(frame, *this, &AgentRecordings::on_end);
}

Verdict AgentRecordings::on_start(const wire::RecordingStart& start) {
  const uint32_t recording = start.recording();
  if (recording == 0) return violation("a recording is numbered from 1");
  if (start.atf_version() != profile_.hello().atf_version()) {
    return violation("the recording's ATF version is not that of the hello");
  }
  if (incoming_ == recording) return std::nullopt;  // a repeat
  take_in(recording);
  if (is_finished(recording)) {
    ack_ended(recording);
    return std::nullopt;
  }
  if (storing() != nullptr) return std::nullopt;  // it is resumed
  Verdict begun = begin(start);
  if (!begun) modules_.begin_recording();
  return begun;
}

Verdict AgentRecordings::on_end(const wire::RecordingEnd& end) {
  if (incoming_ == 0 || end.recording() != incoming_) {
    return violation("the end of a recording that did not begin");
  }
  if (storing() != nullptr) {
    this->end(end);
  } else {
    ack_ended(end.recording());
  }
  take_in(0);
  return std::nullopt;
}

AgentRecordings::SessionRef AgentRecordings::make_session(uint32_t recording, SystemTime start) {
  auto session = std::make_shared<AgentSession>(core_, io_, profile_.account(), recording);
  // Weak, because the owner holds the session, and the session's queue holds this.
  const std::weak_ptr<AgentConnection> weak_owner = connection_.share();
  const std::weak_ptr<AgentSession> weak_session = session;
  session->queue->report_to([this, weak_owner, weak_session](const SessionReport& report) {
    const auto owner = weak_owner.lock();
    const auto reported = weak_session.lock();
    if (owner && reported) on_report(reported, report);
  });
  const AgentSnapshot& agent = profile_.shown();
  SessionSnapshot& shown = session->shown;
  shown.agent = agent.id;
  shown.process_name = agent.process_name;
  shown.pid = agent.pid;
  shown.device_id = agent.device_id;
  if (agent.dialled) shown.route = agent.address;
  shown.tag = agent.tag;
  shown.start_time = start;
  shown.detail = agent.detail;
  return session;
}

Verdict AgentRecordings::begin(const wire::RecordingStart& start) {
  if (current_) {
    if (current_->recording > start.recording()) {
      return violation(
          fmt::format("recording {} after recording {}", start.recording(), current_->recording));
    }
    seal(storage::SessionState::kRecovered, "the agent began another recording without its end");
  }
  if (begun_ >= core_.options.sessions_per_agent) {
    return Refusal{wire::REFUSE_LIMIT,
                   fmt::format("more than {} recordings of one process (sessions_per_agent)",
                               core_.options.sessions_per_agent),
                   false};
  }
  const SessionRef session = make_session(start.recording(), std::chrono::system_clock::now());
  const Status charged = session->charge();
  if (!charged.ok()) {
    core_.live_sessions.fetch_sub(1);
    return over_budget(charged.error().message);
  }
  ++begun_;
  current_ = session;
  const AgentSnapshot& agent = profile_.shown();
  storage::SessionIdentity identity = identity_from(profile_.hello(), start);
  if (agent.dialled) identity.route = agent.address;
  session->push([identity = std::move(identity), key = resume_key_](StoredSession& stored) {
    return stored.open(identity, key);
  });
  if (clock_sync_) session->store(*clock_sync_);
  filter_.begin_recording(start.start_ns());
  if (filter_.get() != nullptr) session->store(*filter_.get());
  session->shown.start_filter = agent.start_filter;
  if (start.late_ns() != 0) {
    session->shown.late_ns = start.late_ns();
    session->note(fmt::format("the recording began {} ms late: its function filter had not come",
                              start.late_ns() / 1'000'000));
  }
  connection_.on_storing_changed();
  return std::nullopt;
}

// If several were left open, only the newest can continue.
void AgentRecordings::restore(const storage::SessionPath& session_path,
                              const storage::ResumeKey& key, uint32_t recording, SystemTime start) {
  const SessionRef session = make_session(recording, start);
  session->charge_found();
  session->opened = true;
  session->shown.name = session_path.name;
  session->shown.directory = session_path.directory;
  session->push([directory = session_path.directory](StoredSession& stored) {
    return stored.resume(directory);
  });
  profile_.set_session(session_path.name);
  SessionRef older = session;
  if (!current_ || current_->recording <= recording) {
    older = std::exchange(current_, session);
    resume_key_ = key;
    session->wait_for_agent();
  }
  if (older) {
    seal_one(std::move(older), storage::SessionState::kRecovered,
             "a later recording of the same process was begun");
  }
  profile_.set_state(AgentState::kDisconnected,
                     "recorded when the collector ended; its session waits for it to come back");
}

void AgentRecordings::end(const wire::RecordingEnd& end) {
  if (!current_) return;
  current_->store_lost_without_stream(end.lost_without_stream());
  if (end.switches_lost() != 0) {
    current_->push([lost = end.switches_lost()](StoredSession& session) {
      session.writer().set_switches_lost(lost);
      return Status();
    });
  }
  if (end.has_process_end()) {
    current_->shown.process_end = to_storage(end.process_end());
    current_->push([ended = current_->shown.process_end](StoredSession& session) {
      session.writer().set_process_end(ended);
      return Status();
    });
  }
  finished_ = current_->recording;
  current_->ended_by_agent = true;
  seal(storage::SessionState::kComplete, end.reason());
  profile_.set_state(AgentState::kConnected, "");
}

void AgentRecordings::seal(storage::SessionState state, const std::string& reason) {
  if (!current_) return;
  seal_one(std::exchange(current_, nullptr), state, reason);
  connection_.on_storing_changed();
}

void AgentRecordings::seal_one(SessionRef session, storage::SessionState state,
                               const std::string& reason) {
  session->seal(state, reason);
  sealing_.push_back(std::move(session));
}

void AgentRecordings::give_up(const std::string& reason) {
  if (current_) finish(current_->recording);
  seal(storage::SessionState::kRecovered, reason);
}

void AgentRecordings::leave() {
  if (!current_) return;
  if (core_.options.seal_at_stop) {
    seal(storage::SessionState::kRecovered, "collector stopped");
    return;
  }
  const SessionRef session = std::exchange(current_, nullptr);
  session->shown.state = SessionState::kInterrupted;
  session->shown.status = "the collector stopped; its next start continues the session";
  session->show(true);
  session->queue->suspend("the collector stopped; the session waits for the next one");
  sealing_.push_back(session);
  connection_.on_storing_changed();
}

void AgentRecordings::wait_for_agent() {
  if (current_) current_->wait_for_agent();
}

void AgentRecordings::note(const std::string& text) {
  if (current_) current_->note(text);
}

void AgentRecordings::when_sealed(Answer<SessionSnapshot> done) {
  if (!any()) {
    done(Error{Code::kNotFound, profile_.name() + " does not record now"});
    return;
  }
  const SessionRef& session = current_ ? current_ : sealing_.back();
  session->when_sealed.push_back(std::move(done));
}

// ---- connections

void AgentRecordings::want_positions() {
  if (!current_) return;
  // They must count what an old connection brought, which may still be queued.
  positions_ticket_ = ++last_ticket_;
  current_->queue->push([ticket = positions_ticket_](StoredSession& session) {
    session.want_positions(ticket);
    return Status();
  });
}

void AgentRecordings::end_connection() {
  positions_ticket_ = 0;
  decoder_.reset();  // a turn may still use it
  take_in(0);
}

void AgentRecordings::keep(const storage::ClockSync& sync) {
  clock_sync_ = sync;
  if (current_) current_->store(sync);
}

void AgentRecordings::keep(const storage::FunctionFilter& filter) {
  if (current_) current_->store(filter);
  filter_.set(filter);
}

void AgentRecordings::keep_start_filter(storage::FunctionFilter filter) {
  if (!current_) filter_.set_for_start(std::move(filter));
}

void AgentRecordings::keep_switched_off(const std::vector<HotFunction>& functions, uint64_t at_ns) {
  const size_t count = filter_.switch_off(functions, at_ns);
  if (count == 0) return;
  spdlog::info("{}: {} functions that are called too often are switched off",
               profile_.name_for_log(), count);
  if (current_) current_->store(*filter_.get());
}

uint64_t AgentRecordings::device_now_ns() const {
  const auto now = static_cast<int64_t>(boottime_ns());
  return static_cast<uint64_t>(now + (clock_sync_ ? clock_sync_->offset_ns : 0));
}

void AgentRecordings::send_acks(const SessionReport& report) {
  if (report.stored.empty() && report.stalls_next == 0) return;
  wire::Ack ack;
  ack.set_stalls_next(report.stalls_next);
  for (const auto& [stream, stored] : report.stored) {
    set_position(stored, *ack.add_positions());
    if (ack.positions_size() < static_cast<int>(wire::kMaxAcksPerFrame)) continue;
    connection_.send(wire::FrameType::kAck, ack);
    ack.Clear();
  }
  if (ack.positions_size() != 0 || ack.stalls_next() != 0) {
    connection_.send(wire::FrameType::kAck, ack);
  }
}

void AgentRecordings::ack_ended(uint32_t recording) {
  const auto is_it = [recording](const SessionRef& one) { return one->recording == recording; };
  if (std::ranges::any_of(sealing_, is_it)) return;
  wire::Ack ack;
  ack.set_recording_ended(recording);
  connection_.send(wire::FrameType::kAck, ack);
}

void AgentRecordings::sweep(SteadyTime now) {
  switch (current_ ? current_->overdue(now, core_.options.resume) : AgentSession::Overdue::kNo) {
    case AgentSession::Overdue::kAgentAway:
      seal(storage::SessionState::kRecovered, "its agent did not come back");
      break;
    case AgentSession::Overdue::kEndNotSent:
      give_up("the agent did not end the recording on command");
      break;
    case AgentSession::Overdue::kNo:
      break;
  }
  std::vector<SessionRef> live = sealing_;
  if (current_) {
    current_->commit_when_settled(now);
    if (current_->queue->has_too_many_files()) current_->queue->commit();
    live.push_back(current_);
  }
  for (const SessionRef& session : live) session->sweep(now);
}

// ---- reports

void AgentRecordings::on_report(const SessionRef& session, const SessionReport& report) {
  if (report.repeated) {
    on_repeated(session, *report.repeated);
    return;
  }
  session->take_report(report);
  if (report.detail && (session == current_ || !current_)) {
    profile_.set_detail(*report.detail);
    profile_.show();
  }
  if (report.opened) on_opened(session, *report.opened);
  for (const auto& [ticket, positions] : report.positions) {
    if (ticket != positions_ticket_ || session != current_) continue;
    positions_ticket_ = 0;
    connection_.on_positions(&positions);
  }
  send_acks(report);
  if (session == current_) {
    // Those that are found again meanwhile are switched off again, which does no harm.
    if (const auto hot = filter_.still_on(report.hot); !hot.empty()) connection_.on_hot(hot);
  }
  if (report.failed) on_failed(session, *report.failed);
  if (report.sealed) on_sealed(session, *report.sealed);
  if (report.suspended) on_suspended(session);
  session->sweep(std::chrono::steady_clock::now());
}

void AgentRecordings::on_opened(const SessionRef& session, const SessionReport::Opened& opened) {
  const bool is_older = session != current_;  // it is being sealed
  if (is_older && !profile_.shown().session.empty()) return;
  profile_.set_session(opened.name);
  if (!is_older && connection_.connected()) {
    profile_.set_state(AgentState::kRecording, "");
    spdlog::info("{} records into {}", profile_.name_for_log(), opened.directory);
  } else {
    profile_.show();
  }
  connection_.on_opened();
}

// The agent did not hear that this recording was sealed: its data is dropped, and the agent is
// informed again.
void AgentRecordings::on_repeated(const SessionRef& session, const std::string& name) {
  session->leave();
  core_.live_sessions.fetch_sub(1);
  std::erase(sealing_, session);
  finish(session->recording);
  if (session == current_) {
    current_.reset();
    connection_.on_storing_changed();
  }
  session->shown.name = name;
  profile_.set_session(name);
  profile_.show();
  spdlog::info("{} repeats {}, which is complete", profile_.name_for_log(), name);
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(session->shown);
  ack_ended(session->recording);
}

void AgentRecordings::on_failed(const SessionRef& session, const Error& error) {
  const bool is_current = session == current_;
  const std::string why = to_string(error);
  spdlog::error("{}: {}: {}", profile_.name_for_log(),
                session->opened ? session->shown.name : "no session", why);
  if (is_storage_fault(error.code) || !session->opened) {
    // Its end was read, but what came before it is not all stored: the agent, which does not know
    // yet that it is sealed, is to send the rest again.
    const bool is_unheard = !current_ && session->ended_by_agent && session->recording == finished_;
    if (is_unheard) --finished_;
    if (is_current) sealing_.push_back(std::exchange(current_, nullptr));  // its queue seals it
    session->shown.status = storage::seal_reason(error);
    if (is_current || is_unheard) {
      const bool is_ours = error.code == Code::kExhausted;
      connection_.on_not_stored(
          {is_ours ? wire::REFUSE_RESOURCES : wire::REFUSE_STORAGE, why, true});
    }
    return;
  }
  if (!is_current) return;
  give_up("the agent's data was refused: " + why);
  connection_.on_bad_data(why);
}

void AgentRecordings::on_sealed(const SessionRef& session, const SessionReport::Sealed& sealed) {
  if (session == current_) current_.reset();  // an old one that turned out not to be resumable
  if (!current_ && std::exchange(positions_ticket_, 0) != 0) connection_.on_positions(nullptr);
  std::erase(sealing_, session);
  session->take_sealed(sealed);
  const SessionSnapshot& shown = session->shown;
  if (session->opened) {
    spdlog::info("{} {}: {} events, {} lost, {} threads{}{}", shown.name,
                 sealed.deferred ? "waits for room to be sealed" : "is sealed", shown.totals.events,
                 shown.totals.lost_events, shown.totals.threads, sealed.reason.empty() ? "" : ": ",
                 sealed.reason);
  }
  if (is_finished(session->recording)) ack_ended(session->recording);
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(shown);
  connection_.on_sealed();
  core_.live_sessions.fetch_sub(1);  // last: where none is left, this thread may be stopped
}

void AgentRecordings::on_suspended(const SessionRef& session) {
  std::erase(sealing_, session);
  session->leave();
  session->show(true);
  const SessionSnapshot& shown = session->shown;
  if (session->opened) {
    spdlog::info(
        "{} is left to the next start: {} events, {} lost, {} threads; without one, "
        "collectctl recover {} seals it",
        shown.name, shown.totals.events, shown.totals.lost_events, shown.totals.threads,
        shown.directory);
  }
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(Error{Code::kUnavailable, shown.status});
  core_.live_sessions.fetch_sub(1);
}

}  // namespace collect::ingest
