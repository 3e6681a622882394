// Sessions of a peer, and what their queues report.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/ingest/limits.h"
#include "daemon/ingest/peer.h"
#include "formats/core/printable.h"

namespace collect::ingest {

Peer::SessionRef Peer::make_session(uint32_t recording, SystemTime start) {
  // Weak, because the session holds the queue and the queue holds this.
  const auto itself = std::make_shared<std::weak_ptr<AgentSession>>();
  const auto on_report = [peer = weak_from_this(), itself](SessionReport report) {
    const auto self = peer.lock();
    const auto reported = itself->lock();
    if (self && reported) self->on_report(reported, std::move(report));
  };
  auto session = std::make_shared<AgentSession>(core_, io_, account_, on_report);
  *itself = session;
  session->recording = recording;
  SessionSnapshot& shown = session->shown;
  shown.agent = agent_.id;
  shown.recording = recording;
  shown.process_name = agent_.process_name;
  shown.pid = agent_.pid;
  shown.device_id = agent_.device_id;
  if (agent_.dialled) shown.route = agent_.address;
  shown.tag = agent_.tag;
  shown.start_time = start;
  shown.detail = agent_.detail;
  using principal::Resource;
  session->place = principal::Lease(account_, Resource::kSessions);
  session->memory = principal::Lease(account_, Resource::kMemory);
  session->files = principal::Lease(account_, Resource::kInodes);
  return session;
}

Status Peer::charge_session(AgentSession& session) {
  COLLECT_TRY(session.place.grow(1));
  COLLECT_TRY(session.memory.grow(kSessionMemory));
  return session.files.grow(storage::kFilesPerSession);
}

// Streams that are opened again on a new connection are charged already.
Status Peer::charge_stream(AgentSession& session) {
  if (++streams_opened_ <= session.charged_streams) return {};
  COLLECT_TRY(session.memory.grow(kStreamMemory));
  COLLECT_TRY(session.files.grow(storage::kFilesPerThread));
  session.charged_streams = streams_opened_;
  return {};
}

// What storage has made, on whichever connection it came.
void Peer::charge_threads(AgentSession& session, uint32_t threads) {
  if (threads <= session.charged_streams) return;
  const uint64_t more = threads - session.charged_streams;
  session.memory.set(session.memory.amount() + more * kStreamMemory);
  session.files.set(session.files.amount() + more * storage::kFilesPerThread);
  session.charged_streams = threads;
}

void Peer::restore(const storage::SessionPath& place, const storage::ResumeKey& key,
                   uint32_t recording, SystemTime start) {
  if (session_ && session_->recording > recording) {
    // Of two that were left open, only the newer one can go on.
    const SessionRef newer = std::move(session_);
    const storage::ResumeKey newer_key = resume_key_;
    restore(place, key, recording, start);
    seal(storage::SessionState::kRecovered, "a later recording of the same process was begun");
    session_ = newer;
    resume_key_ = newer_key;
    return;
  }
  if (session_) {
    seal(storage::SessionState::kRecovered, "a later recording of the same process was begun");
  }
  resume_key_ = key;
  session_ = make_session(recording, start);
  // It is there, whether there is room for it or not.
  session_->place.set(1);
  session_->memory.set(kSessionMemory);
  session_->files.set(storage::kFilesPerSession);
  session_->opened = true;
  session_->shown.name = place.name;
  session_->shown.directory = place.directory;
  session_->push(
      [directory = place.directory](StoredSession& stored) { return stored.resume(directory); });
  agent_.session = place.name;
  interrupt_session();
  set_state(AgentState::kDisconnected,
            "recorded when the collector ended; its session waits for it to come back");
}

void Peer::on_report(const SessionRef& session, SessionReport report) {
  if (report.repeated) {
    on_repeated(session, *report.repeated);
    return;
  }
  if (report.totals.stored_bytes != session->shown.totals.stored_bytes) {
    session->progress_at = std::chrono::steady_clock::now();
  }
  session->take(report);
  if (report.opened) on_opened(session, *report.opened);
  charge_threads(*session, report.totals.threads);
  for (const auto& [ticket, positions] : report.positions) {
    if (ticket == welcome_ticket_ && session == session_) {
      welcome_ticket_ = 0;
      welcome_data(&positions);
    }
  }
  send_acks(report);
  if (report.failed) on_failed(session, *report.failed);
  if (report.sealed) on_sealed(session, *report.sealed);
  if (report.suspended) on_suspended(session);
  session->sweep(std::chrono::steady_clock::now());
}

void Peer::on_opened(const SessionRef& session, const SessionReport::Opened& opened) {
  if (session != session_ && agent_.session != "") return;  // an older one, being sealed
  agent_.session = opened.name;
  if (session == session_ && connected()) {
    set_state(AgentState::kRecording, "");
    spdlog::info("agents/{} {} records into {}", agent_.id, in_quotes(agent_.process_name),
                 opened.directory);
  } else {
    show_agent();
  }
  answer_starts();
}

void Peer::answer_starts() {
  if (!session_ || !session_->opened) return;
  std::vector<PendingStart> begun;
  std::erase_if(starts_, [&](PendingStart& start) {
    if (start.recording != session_->recording) return false;
    begun.push_back(std::move(start));
    return true;
  });
  const SessionSnapshot shown = session_->shown;
  for (const PendingStart& start : begun) start.done(shown);
}

// The agent did not hear that this recording was sealed: its data is dropped, and it is told again.
void Peer::on_repeated(const SessionRef& session, const std::string& name) {
  session->leave();
  core_.live_sessions.fetch_sub(1);
  std::erase(sealing_, session);
  finished_recording_ = std::max(finished_recording_, session->recording);
  if (session == session_) {
    session_.reset();
    take_in(Intake::kDrop);
  }
  session->shown.name = name;
  agent_.session = name;
  show_agent();
  spdlog::info("agents/{} {} repeats {}, which is complete", agent_.id,
               in_quotes(agent_.process_name), name);
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(session->shown);
  ack_recording_ended(session->recording);
}

void Peer::on_failed(const SessionRef& session, const Error& error) {
  const bool is_current = session == session_;
  spdlog::error("agents/{} {}: {}: {}", agent_.id, in_quotes(agent_.process_name),
                session->opened ? session->shown.name : "no session", to_string(error));
  if (is_storage_fault(error.code) || !session->opened) {
    // Its end was read, but what came before it is not all stored: the agent, which is not told
    // that it is sealed, is to send the rest again.
    const bool is_unheard =
        !session_ && session->ended_by_agent && session->recording == finished_recording_;
    if (is_unheard) --finished_recording_;
    if (is_current) {
      sealing_.push_back(std::move(session_));  // its queue seals it by itself
      session_.reset();
    }
    session->shown.status = to_string(error);
    if ((is_current || is_unheard) && (control_ || data_)) {
      const bool is_ours = error.code == Code::kExhausted;
      refuse_both(is_ours ? wire::REFUSE_RESOURCES : wire::REFUSE_STORAGE, to_string(error), true);
    }
    return;
  }
  if (!is_current) return;
  finished_recording_ = std::max(finished_recording_, session->recording);
  seal(storage::SessionState::kRecovered, "the agent's data was refused: " + to_string(error));
  refuse_both(wire::REFUSE_PROTOCOL, to_string(error), false);
}

void Peer::seal(storage::SessionState state, const std::string& reason) {
  if (!session_) return;
  session_->waiting_since.reset();
  session_->seal(state, reason);
  sealing_.push_back(std::move(session_));
  session_.reset();
  if (intake_ == Intake::kStore) take_in(Intake::kDrop);
}

void Peer::on_sealed(const SessionRef& session, const SessionReport::Sealed& sealed) {
  if (session == session_) session_.reset();  // an old one that turned out not to be resumable
  if (!session_ && welcome_ticket_ != 0) {
    welcome_ticket_ = 0;
    welcome_data(nullptr);
  }
  std::erase(sealing_, session);
  session->take_sealed(sealed);
  const SessionSnapshot& shown = session->shown;
  if (session->opened) {
    spdlog::info("{} {}: {} events, {} lost, {} threads{}{}", shown.name,
                 sealed.deferred ? "waits for room to be sealed" : "is sealed", shown.totals.events,
                 shown.totals.lost_events, shown.totals.threads, sealed.reason.empty() ? "" : ": ",
                 sealed.reason);
  }
  if (session->recording <= finished_recording_) ack_recording_ended(session->recording);
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(shown);
  if (stopping_ && control_up_ && sealing_.empty()) say_goodbye();
  core_.live_sessions.fetch_sub(1);  // last: where none is left, this thread may be stopped
}

void Peer::on_suspended(const SessionRef& session) {
  const auto self = shared_from_this();
  std::erase(sealing_, session);
  session->leave();
  session->show(true);
  if (session->opened) {
    spdlog::info(
        "{} is left to the next start: {} events, {} lost, {} threads; without one, "
        "collectctl recover {} seals it",
        session->shown.name, session->shown.totals.events, session->shown.totals.lost_events,
        session->shown.totals.threads, session->shown.directory);
  }
  const auto waiters = std::exchange(session->when_sealed, {});
  for (const auto& done : waiters) done(Error{Code::kUnavailable, session->shown.status});
  core_.live_sessions.fetch_sub(1);
}

void Peer::order(std::function<Result<std::string>(storage::SessionWriter&)> act,
                 Answer<std::string> done) {
  if (!session_ || !session_->opened) {
    done(Error{Code::kNotFound, "agents/" + std::to_string(agent_.id) + " does not record now"});
    return;
  }
  session_->queue->order(std::move(act), std::move(done));
}

// The collector's clock, moved by what the clock probes found; before any probe they are taken for
// equal, which on one machine they are.
uint64_t Peer::device_now_ns() const {
  const auto now = static_cast<int64_t>(boottime_ns());
  return static_cast<uint64_t>(now + (clock_sync_ ? clock_sync_->offset_ns : 0));
}

void Peer::annotate(uint64_t at_ns, const std::string& text, Answer<uint64_t> done) {
  const storage::Marker marker{at_ns != 0 ? at_ns : device_now_ns(), text};
  order(
      [marker](storage::SessionWriter& writer) -> Result<std::string> {
        const Status marked = writer.marker(marker);
        if (!marked.ok()) return marked.error();
        return std::string();
      },
      [done = std::move(done), at = marker.at_ns](Result<std::string> marked) {
        if (marked.ok()) {
          done(at);
        } else {
          done(marked.error());
        }
      });
}

void Peer::roll_container(Answer<std::string> done) {
  order([](storage::SessionWriter& writer) { return writer.roll_container(); }, std::move(done));
}

void Peer::cut(Answer<storage::SessionCut> done) {
  const auto found = std::make_shared<storage::SessionCut>();
  order(
      [found](storage::SessionWriter& writer) -> Result<std::string> {
        auto cut = writer.cut();
        if (!cut.ok()) return cut.error();
        *found = std::move(*cut);
        return std::string();
      },
      [found, done = std::move(done)](const Result<std::string>& result) {
        if (result.ok()) {
          done(std::move(*found));
        } else {
          done(result.error());
        }
      });
}

void Peer::watch_events(EventsWanted wanted, const Answer<std::string>& done) {
  if (!session_ || !session_->opened) {
    done(Error{Code::kNotFound, "agents/" + std::to_string(agent_.id) + " does not record now"});
    return;
  }
  counter_watch_.watch(wanted.events, wanted.on_seen);
  // Without any of functions nobody has to look at records.
  if (std::ranges::all_of(wanted.events, [](const WatchedEvent& event) {
        return event.kind == WatchedEvent::Kind::kCounter;
      })) {
    wanted.events.clear();
  }
  session_->push([wanted = std::move(wanted)](StoredSession& session) {
    session.watch(wanted);
    return Status();
  });
  done(session_->shown.name);
}

void Peer::note_function_filter(storage::FunctionFilter filter) {
  function_filter_ = std::move(filter);
  if (session_) store_function_filter();
  if (function_filter_->only.empty() && function_filter_->except.empty()) function_filter_.reset();
}

void Peer::note_start_filter(StartFilter outcome, storage::FunctionFilter filter) {
  agent_.start_filter = std::move(outcome);
  show_agent();
  if (!session_) function_filter_ = std::move(filter);
}

void Peer::interrupt_session() {
  if (!session_ || session_->waiting_since) return;
  session_->waiting_since = std::chrono::steady_clock::now();
  session_->shown.state = SessionState::kInterrupted;
  session_->shown.status = "its agent is away";
  session_->push([](StoredSession& session) { return session.writer().release_files(); });
  session_->show(true);
}

void Peer::store_clock_sync() {
  session_->push(
      [sync = *clock_sync_](StoredSession& session) { return session.writer().clock_sync(sync); });
}

void Peer::store_function_filter() {
  session_->push([filter = *function_filter_](StoredSession& session) {
    return session.writer().function_filter(filter);
  });
}

void Peer::store_lost_without_stream(uint64_t count) {
  session_->push([count](StoredSession& session) {
    session.writer().set_lost_without_stream(count);
    return Status();
  });
}

void Peer::sweep_sessions(SteadyTime now) {
  if (session_ && session_->waiting_since &&
      now - *session_->waiting_since > core_.options.resume) {
    seal(storage::SessionState::kRecovered, "its agent did not come back");
  }
  if (session_ && session_->stop_asked_at &&
      now - std::max(*session_->stop_asked_at, session_->progress_at) > kStopIdleDeadline) {
    finished_recording_ = std::max(finished_recording_, session_->recording);
    seal(storage::SessionState::kRecovered, "the agent did not end the recording when told to");
  }
  if (session_) session_->commit_when_settled(now);
  if (session_ && session_->queue->has_too_many_files()) session_->queue->commit();
  std::vector<SessionRef> live = sealing_;
  if (session_) live.push_back(session_);
  for (const SessionRef& session : live) session->sweep(now);
}

}  // namespace collect::ingest
