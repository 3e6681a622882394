#include "daemon/ingest/peer/peer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/wire_values.h"
#include "formats/core/text/printable.h"

namespace collect::ingest {
namespace {

constexpr char kCollectorStops[] = "the collector stops";
constexpr char kProcessGone[] = "its process ended without a report";

}  // namespace

Peer::Peer(IngestCore& core, asio::io_context& io, AgentSnapshot agent,
           const storage::ResumeKey& key)
    : core_(core),
      io_(io),
      profile_(core, std::move(agent)),
      recordings_(core, io, profile_, *this, *modules_, key),
      commands_(profile_, recordings_, *this),
      control_frames_(core.observer, profile_, recordings_, commands_, *modules_),
      keep_alive_(core.options.heartbeat) {}

Peer::~Peer() = default;

// ---- hello and welcome

void Peer::adopt(std::shared_ptr<Link> link, const wire::Hello& hello, const std::string& dialled,
                 bool is_new) {
  const bool is_control = hello.channel() == wire::CHANNEL_CONTROL;
  // The agent knows better than we whether its old links live. A half pair loses only the half that
  // is replaced: the two channels may open in any order.
  if ((control_ && data_) || draining_) {
    drop_links("the process connected again");
  } else if (is_control && control_) {
    control_->close();
  } else if (!is_control && data_) {
    data_->end(&Link::close);
  }
  profile_.greet(hello, link->principal(), link->peer(), dialled);
  const bool is_local = link->principal().kind == principal::Principal::Kind::kUid;
  sender_.note(hello, is_local && dialled.empty());
  said_goodbye_ = false;
  detaching_ = false;  // it was attached again
  half_since_ = std::chrono::steady_clock::now();
  link->set_owner(shared_from_this());
  if (is_control) {
    control_ = std::move(link);
    counted_control_bytes_ = 0;
    adopt_control(is_new);
    return;
  }
  decoder_ =
      std::make_shared<AgentDecoder>(profile_.agreed_features(), core_.counters,
                                     core_.options.threads_per_agent, profile_.account(), modules_);
  data_ = std::make_shared<DataLane>(io_, std::move(link), shared_from_this(), decoder_,
                                     core_.lane_buffers, core_.counters);
  const AgentSession* session = recordings_.current();
  if (session != nullptr && session->recording == hello.recording()) {
    recordings_.want_positions();
  } else {
    welcome_data(nullptr);
  }
}

wire::Welcome Peer::welcome() const {
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_collector(core_.options.version);
  welcome.set_heartbeat_ms(static_cast<uint32_t>(core_.options.heartbeat.count()));
  welcome.set_features(profile_.agreed_features());
  if (const AgentSession* session = recordings_.opened()) welcome.set_session(session->shown.name);
  return welcome;
}

void Peer::adopt_control(bool is_new) {
  wire::Welcome message = welcome();
  if (is_new) message.set_resume_key(resume_key().bytes.data(), resume_key().bytes.size());
  const std::shared_ptr<Link> link = control_;  // sending may fail and end it
  link->send(wire::FrameType::kWelcome, message);
  if (control_ != link) return;
  control_up_ = true;
  const SteadyTime now = std::chrono::steady_clock::now();
  keep_alive_.restart(now, link->sent_frames());
  clock_probes_.restart(now);
  control_frames_.restart();
  if (connected()) became_connected();
  link->read_control_frames();
}

// With positions, the session that the agent named continues; without, nothing is known of it.
void Peer::welcome_data(const std::vector<storage::StreamPosition>* positions) {
  const std::shared_ptr<DataLane> data = data_;
  if (!data) return;
  const size_t count = positions == nullptr ? 0 : positions->size();
  for (size_t first = 0; first < count; first += wire::kMaxResumesPerFrame) {
    wire::Resume resume;
    const size_t end = std::min<size_t>(count, first + wire::kMaxResumesPerFrame);
    for (size_t at = first; at < end; ++at) set_position((*positions)[at], *resume.add_positions());
    data->link().send(wire::FrameType::kResume, resume);
  }
  wire::Welcome message = welcome();
  message.set_resumed(positions != nullptr);
  data->link().send(wire::FrameType::kWelcome, message);
  if (data_ != data) return;  // sending failed and ended it
  data_up_ = true;
  recordings_.restart(decoder_);
  if (connected()) became_connected();
  if (data_ == data) data->start();
}

void Peer::became_connected() {
  profile_.count_connection();
  AgentSession* session = recordings_.current();
  if (session != nullptr) session->end_wait();
  profile_.set_state(session != nullptr ? AgentState::kRecording : AgentState::kConnected, "");
  const AgentSnapshot& shown = agent();
  spdlog::info("{} (pid {}, {}) connected from {}{}", profile_.name_for_log(), shown.pid,
               in_quotes(shown.device_id), shown.address, shown.reconnects != 0 ? ", again" : "");
  if (shown.reconnects != 0) recordings_.note("the agent came back from " + shown.address);
  clock_probes_.begin_burst(*control_);
  // A recording that was ended here while the agent was away continues there.
  const wire::Hello& hello = profile_.hello();
  if (hello.is_recording() && hello.recording() != 0 &&
      recordings_.is_finished(hello.recording())) {
    commands_.stop_recording();
  }
}

// ---- what comes

void Peer::on_frame(Link& link, const wire::Frame& frame) {
  control_received_ns_ = boottime_ns();
  if (&link != control_.get()) return;
  keep_alive_.note_received(std::chrono::steady_clock::now());
  Verdict verdict;
  switch (frame.type) {
    case wire::FrameType::kClockReply:
      verdict = verdict_on(frame, *this, &Peer::on_clock_reply);
      break;
    case wire::FrameType::kBye:
      verdict = verdict_on(frame, *this, &Peer::on_bye);
      break;
    case wire::FrameType::kRefuse:
      verdict = verdict_on(frame, *this, &Peer::on_refuse);
      break;
    default:
      verdict = control_frames_.take(frame);
      break;
  }
  if (verdict) refuse(*verdict);
}

Verdict Peer::on_clock_reply(const wire::ClockReply& reply) {
  take_clock_sync(clock_probes_.take(reply, control_received_ns_, *control_));
  return std::nullopt;
}

void Peer::take_clock_sync(const std::optional<storage::ClockSync>& sync) {
  if (sync) recordings_.keep(*sync);
}

Verdict Peer::on_bye(const wire::Bye& bye) {
  said_goodbye_ = !bye.will_return();
  const std::string reason = "the agent said goodbye: " + bye.reason();
  if (data_up_) {
    drain_data(reason);
  } else {
    drop_links(reason);
  }
  return std::nullopt;
}

Verdict Peer::on_refuse(const wire::Refuse& refusal) {
  drop_links("refused by the agent: " + refusal.reason());
  return std::nullopt;
}

bool Peer::on_data_frame(const wire::Frame& frame) {
  const bool is_refused = frame.type == wire::FrameType::kRefuse;
  const Verdict verdict =
      is_refused ? verdict_on(frame, *this, &Peer::on_refuse) : recordings_.take(frame);
  if (verdict) refuse(*verdict);
  return !is_refused && !verdict;
}

void Peer::on_bad_frame(Link& link, wire::FrameError error) {
  (void)link;
  refuse(violation(wire::frame_error_text(error)));
}

void Peer::on_data_end(const std::error_code& error) {
  data_->link().fail(error == asio::error::eof ? "closed by the peer" : error.message());
}

std::chrono::nanoseconds Peer::read_wait() {
  if (recordings_.storing() == nullptr) return {};
  const std::chrono::nanoseconds wait = profile_.account()->stream_open_wait();
  if (wait.count() != 0) core_.counters.reads_held.fetch_add(1, std::memory_order_relaxed);
  return wait;
}

// ---- for its parts

void Peer::send(wire::FrameType type, const google::protobuf::MessageLite& message) {
  if (control_up_) control_->send(type, message);
}

void Peer::on_storing_changed() {
  const AgentSession* session = recordings_.storing();
  if (data_) data_->store_into(session != nullptr ? session->queue : nullptr);
}

void Peer::on_not_stored(const Refusal& refusal) {
  if (control_ || data_) refuse_both(refusal);
}

// What the agent refuses, or a broken link swallows, is found again.
void Peer::on_hot(const std::vector<HotFunction>& functions) {
  command(switch_off_command(functions),
          [weak = weak_from_this(), functions](const Result<wire::CommandResult>& result) {
            if (const auto self = weak.lock(); self && result.ok() && result->ok()) {
              self->recordings_.keep_switched_off(functions, result->at_ns());
            }
          });
}

void Peer::on_bad_data(const std::string& what) {
  refuse_both({wire::REFUSE_PROTOCOL, what, false});
}

void Peer::on_sealed() {
  if (stopping_ && control_up_ && !recordings_.is_sealing()) say_goodbye();
}

// ---- the end of links

// The pair lives and dies together. But what the process sent before it ended, or crashed, may
// still be on its way: when control ends first, data is read to its own end; and when data ends
// behind a recording that is over, control is, for its Bye.
void Peer::on_link_end(Link& link, const std::string& reason) {
  const bool is_data = data_ && &link == &data_->link();
  if (&link == control_.get() && data_up_) {
    drain_data("control link: " + reason);
  } else if (is_data && connected() && recordings_.current() == nullptr) {
    await_goodbye("data link: " + reason);
  } else if (&link == control_.get() || is_data) {
    drop_links(draining_ ? drain_reason_
                         : fmt::format("{} link: {}", is_data ? "data" : "control", reason));
  }
}

void Peer::drain_data(const std::string& reason) {
  if (control_) control_->close();
  control_.reset();
  control_up_ = false;
  clock_probes_.stop();
  draining_ = true;
  drain_reason_ = reason;
  half_since_ = std::chrono::steady_clock::now();  // the sweep ends it if data never does
  commands_.fail_all("the agent's connection ended: " + reason);
}

void Peer::await_goodbye(const std::string& reason) {
  data_->end(&Link::close);
  data_.reset();
  data_up_ = false;
  draining_ = true;
  drain_reason_ = reason;
  half_since_ = std::chrono::steady_clock::now();  // the sweep ends it if no Bye comes
}

void Peer::drop_links(const std::string& reason) {
  if (control_) control_->close();
  if (data_) data_->end(&Link::close);
  links_are_down(reason);
}

// The connection ends with a reason; the session waits, as after any other break.
void Peer::refuse(const Refusal& refusal) {
  recordings_.note("the connection was refused: " + refusal.reason);
  refuse_both(refusal);
}

void Peer::refuse_both(const Refusal& refusal) {
  core_.refused(profile_.name_for_log(), refusal.reason);
  if (control_) control_->refuse(refusal.code, refusal.reason, refusal.retry);
  if (data_) {
    data_->end([refusal](Link& link) { link.refuse(refusal.code, refusal.reason, refusal.retry); });
  }
  links_are_down(refusal.reason);
}

// After both ended, from either side.
void Peer::links_are_down(const std::string& reason) {
  const bool was_up = connected() || draining_;
  draining_ = false;
  control_.reset();
  data_.reset();
  control_up_ = data_up_ = false;
  recordings_.end_connection();
  decoder_.reset();
  modules_->end_connection();
  clock_probes_.stop();
  down_since_ = std::chrono::steady_clock::now();
  commands_.fail_all("the agent's connection ended: " + reason);
  const bool is_shown = was_up || agent().state != AgentState::kGone;
  if (said_goodbye_ || detaching_) {
    recordings_.seal(storage::SessionState::kRecovered, reason);
    profile_.set_state(AgentState::kGone, reason);
  } else if (stopping_) {
    recordings_.leave();
    if (is_shown) profile_.set_state(AgentState::kDisconnected, reason);
  } else {
    const AgentSession* session = recordings_.current();
    if (session != nullptr && session->expects_end()) {
      recordings_.give_up("stopped while its agent was disconnected: " + reason);
    }
    if (was_up) recordings_.note("the link ended: " + reason);
    recordings_.wait_for_agent();
    if (is_shown) profile_.set_state(AgentState::kDisconnected, reason);
  }
  if (was_up) spdlog::info("{} disconnected: {}", profile_.name_for_log(), reason);
}

void Peer::detach(Answer<AgentSnapshot> done) {
  core_.detached.add(agent().process_id);
  detaching_ = true;
  const auto self = shared_from_this();
  const auto finish = [self, done](const Result<SessionSnapshot>&) {
    self->refuse_both({wire::REFUSE_DETACHED, "detached by command", false});
    done(self->agent());
  };
  if (recordings_.current() != nullptr && connected()) {
    stop_recording(finish);
    return;
  }
  recordings_.give_up("detached while its agent was disconnected");
  finish(SessionSnapshot{});
}

void Peer::shut_down() {
  stopping_ = true;
  // An agent whose recording has ended is first informed that it is sealed, and need not come back.
  if (control_up_ && recordings_.current() == nullptr && recordings_.is_sealing()) return;
  say_goodbye();
}

// The agent closes both channels when it reads the Bye. What it had sent before is read first: it
// may be the last of a program that is gone.
void Peer::say_goodbye() {
  const auto self = shared_from_this();
  if (!control_ && draining_) {
    half_since_ = std::chrono::steady_clock::now();
    return;
  }
  wire::Bye bye;
  bye.set_reason(kCollectorStops);
  bye.set_will_return(!core_.options.seal_at_stop);
  if (control_) control_->send(wire::FrameType::kBye, bye);
  if (control_) std::exchange(control_, nullptr)->close_after_sending();
  if (data_up_) {
    drain_data(kCollectorStops);
    // The beginning of a recording may be what was not read: from then on it is waited for.
    const auto data = data_;
    if (recordings_.current() == nullptr && data) data->read_now();
    return;
  }
  if (data_) data_->end(&Link::close_after_sending);
  links_are_down(kCollectorStops);
}

// ---- time

bool Peer::sweep(SteadyTime now, bool may_linger) {
  const auto self = shared_from_this();
  if (control_) {
    const uint64_t received = control_->received_bytes();
    core_.counters.bytes_received.fetch_add(received - counted_control_bytes_);
    counted_control_bytes_ = received;
  }
  const bool awaits_goodbye = draining_ && control_;
  const milliseconds half_deadline =
      stopping_ || awaits_goodbye ? kFarewellDeadline : kPairDeadline;
  if ((control_ != nullptr) != (data_ != nullptr) && now - half_since_ > half_deadline) {
    drop_links(draining_  ? drain_reason_
               : control_ ? "no data channel connected"
                          : "no control channel connected");
  }
  if (data_ && !data_->check_idle(now)) drop_links("a frame on data came to a stop half-way");
  if (control_up_) sweep_control(now);
  commands_.sweep(now);
  if (!control_ && !data_ && recordings_.current() != nullptr && sender_.is_gone()) {
    recordings_.seal(storage::SessionState::kRecovered, kProcessGone);
    profile_.set_state(AgentState::kGone, kProcessGone);
  }
  recordings_.sweep(now);
  if (control_ || data_ || recordings_.any()) return true;
  const bool is_gone = agent().state == AgentState::kGone;
  const bool lingers = may_linger && profile_.was_connected() && !is_gone;
  if (lingers && now - down_since_ <= core_.options.resume) return true;
  if (!is_gone) profile_.set_state(AgentState::kGone, "did not come back");
  return false;
}

void Peer::sweep_control(SteadyTime now) {
  switch (keep_alive_.sweep(now, control_->sent_frames())) {
    case KeepAlive::Due::kDead:
      drop_links(fmt::format("nothing was received from the agent for {} ms",
                             keep_alive_.dead_after().count()));
      return;
    case KeepAlive::Due::kHeartbeat:
      control_->send(wire::FrameType::kHeartbeat, wire::Heartbeat());
      break;
    case KeepAlive::Due::kNothing:
      break;
  }
  if (!control_up_) return;
  take_clock_sync(clock_probes_.sweep(now));
  if (clock_probes_.is_due(now) && connected()) clock_probes_.begin_burst(*control_);
}

// ---- what people want

void Peer::stop_recording(Answer<SessionSnapshot> done) {
  AgentSession* session = recordings_.current();
  recordings_.when_sealed(std::move(done));
  if (session == nullptr) return;
  if (!connected()) {
    recordings_.give_up("stopped while its agent was disconnected");
  } else if (session->expect_end()) {
    commands_.stop_recording();  // the sweep has its deadline
  }
}

template <class T>
AgentSession* Peer::recording_for(const Answer<T>& done) const {
  AgentSession* session = recordings_.opened();
  if (session == nullptr) done(Error{Code::kNotFound, profile_.name() + " does not record now"});
  return session;
}

void Peer::annotate(uint64_t at_ns, const std::string& text, Answer<uint64_t> done) {
  const storage::Marker marker{at_ns != 0 ? at_ns : recordings_.device_now_ns(), text};
  if (AgentSession* session = recording_for(done)) session->annotate(marker, std::move(done));
}

void Peer::roll_container(Answer<std::string> done) {
  if (AgentSession* session = recording_for(done)) session->roll_container(std::move(done));
}

void Peer::cut(Answer<storage::SessionCut> done) {
  if (AgentSession* session = recording_for(done)) session->cut(std::move(done));
}

void Peer::watch_events(EventsWanted wanted, const Answer<std::string>& done) {
  AgentSession* session = recording_for(done);
  if (session == nullptr) return;
  profile_.counters().watch(wanted.events, wanted.on_seen);
  // Without any of functions no one has to look at records.
  if (std::ranges::all_of(wanted.events, [](const WatchedEvent& event) {
        return event.kind == WatchedEvent::Kind::kCounter;
      })) {
    wanted.events.clear();
  }
  session->push([wanted = std::move(wanted)](StoredSession& stored) {
    stored.watch(wanted);
    return Status();
  });
  done(session->shown.name);
}

void Peer::note_start_filter(StartFilter outcome, storage::FunctionFilter filter) {
  profile_.set_start_filter(std::move(outcome));
  profile_.show();
  recordings_.keep_start_filter(std::move(filter));
}

}  // namespace collect::ingest
