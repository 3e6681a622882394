// The data channel of a peer: WIRE.md "Metadata before records" and "Acks and resume".
#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/ingest/handshake.h"
#include "daemon/ingest/limits.h"
#include "daemon/ingest/peer.h"
#include "proto/wire/codec_rules.h"

namespace collect::ingest {

// Kept twice: for names of functions, and for the manifest.
uint64_t Peer::memory_of(const std::vector<storage::ModuleInfo>& modules) {
  uint64_t bytes = 0;
  for (const storage::ModuleInfo& module : modules) {
    bytes += 2 * (sizeof module + module.path.size() + module.build_id.size());
  }
  return bytes;
}

// With positions, the session that the agent named goes on; without, nothing is known of it.
void Peer::welcome_data(const std::vector<storage::StreamPosition>* positions) {
  const std::shared_ptr<DataLane> data = data_;
  if (!data) return;
  const size_t count = positions == nullptr ? 0 : positions->size();
  for (size_t first = 0; first < count; first += wire::kMaxResumesPerFrame) {
    wire::Resume resume;
    const size_t end = std::min<size_t>(count, first + wire::kMaxResumesPerFrame);
    for (size_t at = first; at < end; ++at) {
      const storage::StreamPosition& known = (*positions)[at];
      wire::StreamPosition* position = resume.add_positions();
      position->set_stream_id(known.stream_id);
      position->set_index_next(known.index_next);
      position->set_detail_next(known.detail_next);
      position->set_closed(known.closed);
    }
    data->link().send(wire::FrameType::kResume, resume);
  }
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_collector(core_.options.version);
  welcome.set_heartbeat_ms(static_cast<uint32_t>(core_.options.heartbeat.count()));
  welcome.set_resumed(positions != nullptr);
  if (session_ && session_->opened) welcome.set_session(session_->shown.name);
  welcome.set_features(agreed_features());
  data->link().send(wire::FrameType::kWelcome, welcome);
  if (data_ != data) return;  // sending failed and ended it
  data_up_ = true;
  streams_.clear();
  streams_opened_ = 0;
  intake_ = Intake::kNone;
  if (connected()) became_connected();
  if (data_ == data) data->start();
}

uint64_t Peer::agreed_features() const {
  uint64_t offered = wire::kFeatureStartFilter;
  if (core_.options.page_codecs) {
    const bool is_of_this_machine = !hello_.boot_id().empty() && hello_.boot_id() == boot_id();
    offered |= wire::codec_features(is_of_this_machine);
  }
  return offered & hello_.features();
}

std::chrono::nanoseconds Peer::read_wait() {
  if (!session_ || intake_ != Intake::kStore) return {};
  const std::chrono::nanoseconds wait = account_->stream_open_wait();
  if (wait.count() != 0) core_.counters.reads_held.fetch_add(1, std::memory_order_relaxed);
  return wait;
}

void Peer::on_data_fault(const std::string& fault) {
  violation(fault);
}

void Peer::on_data_end(const std::error_code& error) {
  data_->link().fail(error == asio::error::eof ? "closed by the peer" : error.message());
}

void Peer::take_in(Intake intake) {
  intake_ = intake;
  if (data_) data_->store_into(intake == Intake::kStore ? session_->queue : nullptr);
}

// The connection ends with a reason; the session waits, as after any other break.
bool Peer::violation(const std::string& what) {
  if (session_) session_->note("the connection was refused: " + what);
  refuse_both(wire::REFUSE_PROTOCOL, what, true);
  return false;
}

void Peer::keep(SessionQueue::Act act) {
  if (intake_ != Intake::kStore || !session_) return;
  session_->progress_at = std::chrono::steady_clock::now();
  session_->push(std::move(act));
}

bool Peer::on_data_frame(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kRecordingStart:
      return on_recording_start(frame);
    case wire::FrameType::kModules:
      return on_modules(frame);
    case wire::FrameType::kStreamOpen:
      return on_stream_open(frame);
    case wire::FrameType::kStreamClose:
      return on_stream_close(frame);
    case wire::FrameType::kDetailState:
      return on_detail_state(frame);
    case wire::FrameType::kStalls:
      return on_stalls(frame);
    case wire::FrameType::kRecordingEnd:
      return on_recording_end(frame);
    case wire::FrameType::kRefuse: {
      const auto refusal = parsed<wire::Refuse>(frame);
      if (refusal) drop_links("refused by the agent: " + refusal->reason());
      return false;
    }
    case wire::FrameType::kDial:
    case wire::FrameType::kHello:
    case wire::FrameType::kChallenge:
    case wire::FrameType::kProof:
    case wire::FrameType::kResume:
    case wire::FrameType::kWelcome:
    case wire::FrameType::kAck:
    case wire::FrameType::kCommand:
    case wire::FrameType::kCommandResult:
    case wire::FrameType::kClockProbe:
    case wire::FrameType::kClockReply:
    case wire::FrameType::kHeartbeat:
    case wire::FrameType::kBye:
    case wire::FrameType::kWantFunctionFilter:
    case wire::FrameType::kCounters:
      return violation("frame type " + std::to_string(static_cast<unsigned>(frame.type)) +
                       " does not belong on the data channel");
    default:
      return true;  // of a later version: skipped
  }
}

bool Peer::on_recording_start(const wire::Frame& frame) {
  const auto start = parsed<wire::RecordingStart>(frame);
  if (!start) return false;
  if (start->recording() == 0) return violation("a recording is numbered from 1");
  if (start->atf_version() != hello_.atf_version()) {
    return violation("the recording's ATF version is not that of the hello");
  }
  const bool repeated = intake_ != Intake::kNone && intake_recording_ == start->recording();
  if (repeated) return true;
  streams_.clear();
  pages_->close_all_streams();
  intake_recording_ = start->recording();
  if (start->recording() <= finished_recording_) {
    take_in(Intake::kDrop);
    ack_recording_ended(start->recording());
    return true;
  }
  return begin_recording(*start);
}

bool Peer::begin_recording(const wire::RecordingStart& start) {
  if (session_ && session_->recording == start.recording()) {  // resumed
    take_in(Intake::kStore);
    return true;
  }
  if (session_) {
    if (session_->recording > start.recording()) {
      return violation("recording " + std::to_string(start.recording()) + " after recording " +
                       std::to_string(session_->recording));
    }
    seal(storage::SessionState::kRecovered, "the agent began another recording without its end");
  }
  if (sessions_begun_ >= core_.options.sessions_per_agent) {
    const std::string reason = "more than " + std::to_string(core_.options.sessions_per_agent) +
                               " recordings of one process (sessions_per_agent)";
    refuse_both(wire::REFUSE_LIMIT, reason, false);
    return false;
  }
  const SessionRef session = make_session(start.recording(), std::chrono::system_clock::now());
  const Status charged = charge_session(*session);
  if (!charged.ok()) {
    core_.live_sessions.fetch_sub(1);
    return over_budget(charged.error().message);
  }
  ++sessions_begun_;
  session_ = session;
  take_in(Intake::kStore);  // only now: a seal drops what still comes for its own session
  storage::SessionIdentity identity = identity_from(hello_, start);
  if (agent_.dialled) identity.route = agent_.address;
  session_->push([identity = std::move(identity), key = resume_key_](StoredSession& stored) {
    return stored.open(identity, key);
  });
  if (clock_sync_) store_clock_sync();
  if (function_filter_) {
    if (function_filter_->at_ns == 0) function_filter_->at_ns = start.start_ns();
    store_function_filter();
  }
  session_->shown.start_filter = agent_.start_filter;
  if (start.late_ns() != 0) {
    session_->shown.late_ns = start.late_ns();
    session_->note("the recording began " + std::to_string(start.late_ns() / 1'000'000) +
                   " ms late: the function filter that it was to begin with had not come");
  }
  requested_memory_.reset();
  modules_.clear();
  return true;
}

bool Peer::on_modules(const wire::Frame& frame) {
  auto modules = parsed<wire::Modules>(frame);
  if (!modules) return false;
  if (intake_ == Intake::kNone) return violation("modules before a recording began");
  if (modules->modules_size() > static_cast<int>(wire::kMaxModulesPerFrame)) {
    return violation("more than 16 modules in one frame");
  }
  std::vector<storage::ModuleInfo> infos = to_storage(*modules);
  if (!take_modules(infos)) return false;
  if (intake_ == Intake::kStore && session_) {
    const Status charged = session_->memory.grow(memory_of(infos));
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  keep([infos = std::move(infos)](StoredSession& session) {
    return session.writer().add_modules(infos);
  });
  return true;
}

bool Peer::take_modules(const std::vector<storage::ModuleInfo>& infos) {
  for (const storage::ModuleInfo& info : infos) {
    if (info.path.size() > kMaxPathBytes || info.build_id.size() > kMaxBuildIdBytes) {
      return violation("a module's path or build id is longer than the protocol allows");
    }
    if (modules_.size() < storage::kMaxModules || modules_.contains(info.module_id)) {
      modules_[info.module_id] = info;  // beyond it, storage says so
    }
  }
  return true;
}

std::vector<storage::ModuleInfo> Peer::modules() const {
  std::vector<storage::ModuleInfo> all;
  all.reserve(modules_.size());
  for (const auto& [id, module] : modules_) all.push_back(module);
  return all;
}

std::vector<storage::ThreadIdentity> Peer::threads() const {
  std::vector<storage::ThreadIdentity> all;
  all.reserve(streams_.size());
  for (const auto& [id, thread] : streams_) all.push_back(thread);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.thread_id < b.thread_id; });
  return all;
}

bool Peer::on_stream_open(const wire::Frame& frame) {
  const auto stream = parsed<wire::StreamOpen>(frame);
  if (!stream) return false;
  if (intake_ == Intake::kNone || stream->recording() != intake_recording_) {
    return violation("stream " + std::to_string(stream->stream_id()) +
                     " of a recording that did not begin");
  }
  if (stream->thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  if (streams_.contains(stream->stream_id())) return true;
  if (streams_.size() >= core_.options.threads_per_agent) {
    const std::string reason = "more than " + std::to_string(core_.options.threads_per_agent) +
                               " threads at once (threads_per_agent)";
    if (session_) session_->note("the connection was refused: " + reason);
    refuse_both(wire::REFUSE_LIMIT, reason, false);
    return false;
  }
  account_->count_stream_open();
  if (intake_ == Intake::kStore && session_) {
    const Status charged = charge_stream(*session_);
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  streams_[stream->stream_id()] = {std::nullopt, stream->thread_id(), stream->thread_name()};
  pages_->open_stream(stream->stream_id());
  keep([info = to_storage(*stream)](StoredSession& session) {
    return session.writer().open_stream(info);
  });
  return true;
}

bool Peer::over_budget(const std::string& reason) {
  if (session_) session_->note("the connection was refused: " + reason);
  refuse_both(wire::REFUSE_LIMIT, reason, true);
  return false;
}

bool Peer::on_stream_close(const wire::Frame& frame) {
  const auto stream = parsed<wire::StreamClose>(frame);
  if (!stream) return false;
  const auto known = streams_.find(stream->stream_id());
  if (known == streams_.end()) {
    return violation("close of stream " + std::to_string(stream->stream_id()) +
                     ", which is not open");
  }
  if (stream->index_count() < pages_->next_seq(stream->stream_id(), Lane::kIndex) ||
      stream->detail_count() < pages_->next_seq(stream->stream_id(), Lane::kDetail)) {
    return violation("stream " + std::to_string(stream->stream_id()) +
                     " closes with fewer records than it sent");
  }
  if (stream->thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  streams_.erase(known);
  pages_->close_stream(stream->stream_id());
  keep([end = to_storage(*stream)](StoredSession& session) { return session.close_stream(end); });
  return true;
}

bool Peer::on_detail_state(const wire::Frame& frame) {
  const auto change = parsed<wire::DetailState>(frame);
  if (!change) return false;
  if (intake_ == Intake::kNone) return violation("a detail state before a recording began");
  agent_.detail = static_cast<DetailMode>(std::clamp<int>(change->mode(), 0, 2));
  if (session_) {
    session_->shown.detail = agent_.detail;
    session_->show(true);
  }
  show_agent();
  keep([change = to_storage(*change)](StoredSession& session) {
    return session.change_detail(change);
  });
  return true;
}

bool Peer::on_stalls(const wire::Frame& frame) {
  const auto stalls = parsed<wire::Stalls>(frame);
  if (!stalls) return false;
  if (intake_ == Intake::kNone) return violation("stalls before a recording began");
  if (stalls->stalls_size() > static_cast<int>(wire::kMaxStallsPerFrame)) {
    return violation("more than 64 stalls in one frame");
  }
  ArrivedStalls arrived;
  arrived.next_number = stalls->first_number() + static_cast<uint64_t>(stalls->stalls_size());
  for (const wire::Stall& stall : stalls->stalls()) {
    const auto known = to_storage(stall);
    if (!known.ok()) return violation(known.error().message);
    if (*known) arrived.stalls.push_back({stall.stream_id(), **known});
  }
  keep([arrived = std::move(arrived)](StoredSession& session) {
    return session.add_stalls(arrived);
  });
  return true;
}

bool Peer::on_recording_end(const wire::Frame& frame) {
  const auto end = parsed<wire::RecordingEnd>(frame);
  if (!end) return false;
  if (intake_ == Intake::kNone || end->recording() != intake_recording_) {
    return violation("the end of a recording that did not begin");
  }
  if (intake_ == Intake::kDrop) {
    ack_recording_ended(end->recording());
  } else if (session_) {
    if (end->lost_without_stream() != 0) store_lost_without_stream(end->lost_without_stream());
    if (end->has_process_end()) {
      session_->shown.process_end = to_storage(end->process_end());
      keep([ended = session_->shown.process_end](StoredSession& session) {
        session.writer().set_process_end(ended);
        return Status();
      });
    }
    finished_recording_ = end->recording();
    session_->ended_by_agent = true;
    seal(storage::SessionState::kComplete, end->reason());
    set_state(AgentState::kConnected, "");
  }
  take_in(Intake::kNone);
  streams_.clear();
  pages_->close_all_streams();
  return true;
}

}  // namespace collect::ingest
