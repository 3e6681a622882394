#include "daemon/ingest/peer.h"

#include <spdlog/spdlog.h>

#include "daemon/ingest/handshake.h"
#include "daemon/ingest/limits.h"
#include "formats/core/printable.h"

namespace collect::ingest {
namespace {

constexpr char kCollectorStops[] = "the collector stops";

}  // namespace

Peer::Peer(IngestCore& core, asio::io_context& io, AgentSnapshot agent,
           const storage::ResumeKey& key)
    : core_(core), io_(io), agent_(std::move(agent)), resume_key_(key) {
  agent_.id = core_.next_agent_id.fetch_add(1);
  account_ = core_.budget.account({});  // nobody has connected yet
}

Peer::~Peer() = default;

void Peer::adopt(std::shared_ptr<Link> link, const wire::Hello& hello, const std::string& dialled,
                 bool is_new) {
  const bool is_control = hello.channel() == wire::CHANNEL_CONTROL;
  // The agent knows better than we whether its old links live. A half pair loses only the half that
  // is replaced: the two channels may open in any order.
  if ((control_ && data_) || draining_) {
    drop_links("the process connected anew");
  } else if (is_control && control_) {
    control_->close();
  } else if (!is_control && data_) {
    data_->end(&Link::close);
  }
  hello_ = hello;
  account_ = core_.budget.account(link->principal());
  AgentSnapshot fresh = agent_from_hello(hello);
  fresh.id = agent_.id;
  fresh.state = agent_.state;
  fresh.session = agent_.session;
  fresh.connected_at = agent_.connected_at;
  fresh.reconnects = agent_.reconnects;
  fresh.address = dialled.empty() ? link->peer() : dialled;
  fresh.dialled = !dialled.empty();
  fresh.status = agent_.status;
  fresh.start_filter = agent_.start_filter;
  agent_ = std::move(fresh);
  said_goodbye_ = false;
  detaching_ = false;  // it was attached again
  half_since_ = std::chrono::steady_clock::now();
  link->set_owner(shared_from_this());
  if (is_control) {
    control_ = std::move(link);
    counted_control_bytes_ = 0;
    adopt_control(is_new);
  } else {
    pages_ = std::make_shared<AgentDecoder>(agreed_features(), core_.counters);
    data_ = std::make_shared<DataLane>(io_, std::move(link), shared_from_this(), pages_,
                                       core_.lane_buffers, core_.counters);
    adopt_data(hello);
  }
}

void Peer::adopt_control(bool is_new) {
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_collector(core_.options.version);
  welcome.set_heartbeat_ms(static_cast<uint32_t>(core_.options.heartbeat.count()));
  welcome.set_features(agreed_features());
  if (session_ && session_->opened) welcome.set_session(session_->shown.name);
  if (is_new) welcome.set_resume_key(resume_key_.bytes.data(), resume_key_.bytes.size());
  const std::shared_ptr<Link> link = control_;  // sending may fail and end it
  link->send(wire::FrameType::kWelcome, welcome);
  if (control_ != link) return;
  control_up_ = true;
  control_heard_at_ = control_sent_at_ = std::chrono::steady_clock::now();
  control_sent_frames_ = link->sent_frames();
  clock_probes_.restart(control_heard_at_);
  filter_asked_ = false;
  if (connected()) became_connected();
  link->read_control_frames();
}

void Peer::adopt_data(const wire::Hello& hello) {
  if (session_ && session_->recording == hello.recording() && hello.recording() != 0) {
    // The positions must count what the old connection brought, which may still be queued.
    welcome_ticket_ = next_ticket_++;
    session_->queue->push([ticket = welcome_ticket_](StoredSession& session) {
      session.want_positions(ticket);
      return Status();
    });
    return;
  }
  welcome_data(nullptr);
}

void Peer::became_connected() {
  if (was_connected_) ++agent_.reconnects;
  was_connected_ = true;
  agent_.connected_at = std::chrono::system_clock::now();
  if (session_) {
    session_->waiting_since.reset();
    session_->shown.state = SessionState::kActive;
    session_->shown.status.clear();
    session_->show(true);
  }
  set_state(session_ ? AgentState::kRecording : AgentState::kConnected, "");
  spdlog::info("agents/{} {} (pid {}, {}) connected from {}{}", agent_.id,
               in_quotes(agent_.process_name), agent_.pid, in_quotes(agent_.device_id),
               agent_.address, agent_.reconnects != 0 ? ", again" : "");
  if (agent_.reconnects != 0 && session_) {
    session_->note("the agent came back from " + agent_.address);
  }
  clock_probes_.begin_burst(*control_);
  // A recording that was ended here while the agent was away goes on there.
  if (hello_.is_recording() && hello_.recording() != 0 &&
      hello_.recording() <= finished_recording_) {
    wire::Command stop;
    stop.mutable_stop_recording();
    command(std::move(stop), [](Result<wire::CommandResult>) {});
  }
}

// The pair lives and dies together. But what the process sent before it ended, or crashed, may
// still be on its way: when control ends first, data is read to its own end; and when data ends
// behind a recording that is over, control is, for its Bye.
void Peer::on_link_end(Link& link, const std::string& reason) {
  const bool is_data = data_ && &link == &data_->link();
  if (&link == control_.get() && data_up_) {
    drain_data("control link: " + reason);
  } else if (is_data && connected() && !session_) {
    await_goodbye("data link: " + reason);
  } else if (&link == control_.get() || is_data) {
    drop_links(draining_ ? drain_reason_
                         : std::string(is_data ? "data" : "control") + " link: " + reason);
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
  fail_commands("the agent's connection ended: " + reason);
}

void Peer::await_goodbye(const std::string& reason) {
  data_->end(&Link::close);
  data_.reset();
  data_up_ = false;
  draining_ = true;
  drain_reason_ = reason;
  half_since_ = std::chrono::steady_clock::now();  // the sweep ends it if no Bye comes
}

void Peer::on_bad_frame(Link& link, wire::FrameError error) {
  (void)link;
  violation(wire::frame_error_text(error));
}

void Peer::drop_links(const std::string& reason) {
  end_both();
  links_are_down(reason);
}

void Peer::refuse_both(wire::RefuseCode code, const std::string& reason, bool retry) {
  core_.refused("agents/" + std::to_string(agent_.id) + " " + in_quotes(agent_.process_name),
                reason);
  if (control_) control_->refuse(code, reason, retry);
  if (data_) data_->end([=](Link& link) { link.refuse(code, reason, retry); });
  links_are_down(reason);
}

void Peer::end_both() {
  if (control_) control_->close();
  if (data_) data_->end(&Link::close);
}

// After both ended, whoever ended them.
void Peer::links_are_down(const std::string& reason) {
  const bool was_up = connected() || draining_;
  draining_ = false;
  control_.reset();
  data_.reset();
  control_up_ = data_up_ = false;
  welcome_ticket_ = 0;
  intake_ = Intake::kNone;
  streams_.clear();
  clock_probes_.stop();
  requested_memory_.reset();
  down_since_ = std::chrono::steady_clock::now();
  fail_commands("the agent's connection ended: " + reason);
  if (said_goodbye_ || detaching_) {
    seal(storage::SessionState::kRecovered, reason);
    set_state(AgentState::kGone, reason);
  } else if (stopping_) {
    leave_session();
    if (was_up || agent_.state != AgentState::kGone) set_state(AgentState::kDisconnected, reason);
  } else {
    if (session_ && session_->stop_asked_at) {
      finished_recording_ = std::max(finished_recording_, session_->recording);
      seal(storage::SessionState::kRecovered,
           "stopped while its agent was disconnected: " + reason);
    }
    if (session_ && was_up) session_->note("the link ended: " + reason);
    interrupt_session();
    if (was_up || agent_.state != AgentState::kGone) set_state(AgentState::kDisconnected, reason);
  }
  if (was_up)
    spdlog::info("agents/{} {} disconnected: {}", agent_.id, in_quotes(agent_.process_name),
                 reason);
}

void Peer::detach(Answer<AgentSnapshot> done) {
  core_.detached.add(agent_.process_id);
  detaching_ = true;
  const auto self = shared_from_this();
  const auto finish = [self, done](Result<SessionSnapshot>) {
    self->refuse_both(wire::REFUSE_DETACHED, "detached by command", false);
    done(self->agent_);
  };
  if (session_ && connected()) {
    stop_recording(finish);
    return;
  }
  if (session_) {
    finished_recording_ = std::max(finished_recording_, session_->recording);
    seal(storage::SessionState::kRecovered, "detached while its agent was disconnected");
  }
  finish(SessionSnapshot{});
}

void Peer::shut_down() {
  stopping_ = true;
  // An agent whose recording has ended hears first that it is sealed, and need not come back.
  if (control_up_ && !session_ && !sealing_.empty()) return;
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
    if (!session_ && data) data->read_now();
    return;
  }
  if (data_) data_->end(&Link::close_after_sending);
  links_are_down(kCollectorStops);
}

// The session's agent can come back, unless this collector is there for one program alone.
void Peer::leave_session() {
  if (!session_) return;
  if (core_.options.seal_at_stop) {
    seal(storage::SessionState::kRecovered, "collector stopped");
    return;
  }
  const SessionRef session = std::move(session_);
  session_.reset();
  session->shown.state = SessionState::kInterrupted;
  session->shown.status = "the collector stopped; its next start continues the session";
  session->show(true);
  session->queue->suspend("the collector stopped; the session waits for the next one");
  sealing_.push_back(session);
  if (intake_ == Intake::kStore) take_in(Intake::kDrop);
}

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
               : control_ ? "no data channel came"
                          : "no control channel came");
  }
  if (data_ && !data_->check_idle(now)) drop_links("a frame on data came to a stop half-way");
  if (control_up_) sweep_control(now);
  sweep_commands(now);
  sweep_sessions(now);
  if (control_ || data_ || session_ || !sealing_.empty()) return true;
  const bool lingers = may_linger && was_connected_ && agent_.state != AgentState::kGone;
  if (lingers && now - down_since_ <= core_.options.resume) return true;
  if (agent_.state != AgentState::kGone) set_state(AgentState::kGone, "did not come back");
  return false;
}

void Peer::set_state(AgentState state, const std::string& status) {
  agent_.state = state;
  agent_.status = status;
  storage::bound_text(agent_.status);  // it may be what the agent said, as long as a frame
  show_agent();
}

void Peer::show_agent() {
  core_.observer.agent_changed(agent_);
}

}  // namespace collect::ingest
