// One process that streams, or has streamed: its two links, its recording, its commands.
//
// Belongs to one io thread from its first hello to the end: links, timers and session reports of
// this process all run there, so nothing here is locked. Others reach it by posting to that thread
// (Ingest does). The peer outlives its links: it waits for the process to come back and resume.
//
// Four files: peer.cc (links and life), peer_data.cc (the data channel), peer_control.cc (the
// control channel, clock and commands), peer_session.cc (sessions and what writers report).
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/ingest/agent_decoder.h"
#include "daemon/ingest/clock_probes.h"
#include "daemon/ingest/core.h"
#include "daemon/ingest/counter_watch.h"
#include "daemon/ingest/data_lane.h"
#include "daemon/ingest/handshake.h"
#include "daemon/ingest/link.h"
#include "daemon/ingest/live_session.h"
#include "daemon/ingest/pending_commands.h"
#include "daemon/ingest/snapshot.h"
#include "proto/wire/wire.pb.h"
#include "storage/session_layout.h"
#include "storage/thread_pattern.h"

namespace collect::ingest {

// A recording of the agent.
struct AgentSession : LiveSession {
  using LiveSession::LiveSession;

  uint32_t recording = 0;
  bool ended_by_agent = false;              // its RecordingEnd was read
  SteadyTime progress_at{};                 // something arrived
  std::optional<SteadyTime> waiting_since;  // its agent is away
  std::optional<SteadyTime> stop_asked_at;
  // What it takes of its principal's budget, until it is sealed.
  principal::Lease place;
  principal::Lease memory;
  principal::Lease files;
  uint32_t charged_streams = 0;
};

class Peer final : public LinkOwner, public LaneOwner, public std::enable_shared_from_this<Peer> {
 public:
  Peer(IngestCore& core, asio::io_context& io, AgentSnapshot agent, const storage::ResumeKey& key);
  ~Peer() override;

  // What whoever says that it is this process has to know.
  const storage::ResumeKey& resume_key() const { return resume_key_; }
  // A connection whose hello was checked, also for the resume key; or it `is_new`, and is given the
  // key. Replaces what the process had on that channel.
  void adopt(std::shared_ptr<Link> link, const wire::Hello& hello, const std::string& dialled,
             bool is_new);
  // A session that a former collector left unsealed; this process may come back for it.
  void restore(const storage::SessionPath& place, const storage::ResumeKey& key, uint32_t recording,
               SystemTime start);
  // Time passes. False: this peer is over and may be forgotten. Without `may_linger`, one that is
  // away and has no session is over at once.
  bool sweep(SteadyTime now, bool may_linger);

  void start_recording(Answer<SessionSnapshot> done);
  void stop_recording(Answer<SessionSnapshot> done);  // answers when sealed
  void command(wire::Command command, Answer<wire::CommandResult> done);
  void detach(Answer<AgentSnapshot> done);
  // Of the session that records now; kNotFound without one.
  void annotate(uint64_t at_ns, const std::string& text, Answer<uint64_t> done);
  void roll_container(Answer<std::string> done);
  void cut(Answer<storage::SessionCut> done);
  void watch_events(EventsWanted wanted, const Answer<std::string>& done);
  // The agent holds it from now on: noted in the session that records, and in later ones.
  void note_function_filter(storage::FunctionFilter filter);
  // What became of its wish: before the agent is told, so that its recording finds it here.
  void note_start_filter(StartFilter outcome, storage::FunctionFilter filter);
  // The collector stops: its session is left to the next one, as far as its agent can come back.
  void shut_down();
  // Ends both links, so that whoever dialled begins anew; the session waits.
  void drop_links(const std::string& reason);

  const AgentSnapshot& agent() const { return agent_; }
  // Of the current recording, or the last one.
  std::vector<storage::ModuleInfo> modules() const;
  // Those that record on this connection, by id.
  std::vector<storage::ThreadIdentity> threads() const;
  bool connected() const { return control_up_ && data_up_; }

  // LinkOwner and LaneOwner
  void on_frame(Link& link, const wire::Frame& frame) override;
  void on_bad_frame(Link& link, wire::FrameError error) override;
  void on_link_end(Link& link, const std::string& reason) override;
  bool on_data_frame(const wire::Frame& frame) override;
  void on_data_fault(const std::string& fault) override;
  void on_data_end(const std::error_code& error) override;
  std::chrono::nanoseconds read_wait() override;

 private:
  using SessionRef = std::shared_ptr<AgentSession>;
  struct PendingStart {
    uint32_t recording = 0;
    Answer<SessionSnapshot> done;
    SteadyTime deadline;
  };
  enum class Intake : uint8_t { kNone, kStore, kDrop };  // of the data channel's recording

  // peer.cc
  void adopt_control(bool is_new);
  void adopt_data(const wire::Hello& hello);
  void became_connected();
  void links_are_down(const std::string& reason);
  void drain_data(const std::string& reason);
  void await_goodbye(const std::string& reason);
  void say_goodbye();
  void leave_session();
  void refuse_both(wire::RefuseCode code, const std::string& reason, bool retry);
  void end_both();
  void set_state(AgentState state, const std::string& status);
  void show_agent();

  // peer_data.cc
  void welcome_data(const std::vector<storage::StreamPosition>* positions);
  // Always false: "stop reading".
  bool violation(const std::string& what);
  bool on_recording_start(const wire::Frame& frame);
  bool begin_recording(const wire::RecordingStart& start);
  bool on_modules(const wire::Frame& frame);
  static uint64_t memory_of(const std::vector<storage::ModuleInfo>& modules);
  bool on_stream_open(const wire::Frame& frame);
  // The principal has too much: the connection ends, and may come again.
  bool over_budget(const std::string& reason);
  bool on_stream_close(const wire::Frame& frame);
  bool on_detail_state(const wire::Frame& frame);
  bool on_stalls(const wire::Frame& frame);
  bool on_recording_end(const wire::Frame& frame);
  uint64_t agreed_features() const;
  void take_in(Intake intake);
  void keep(SessionQueue::Act act);  // into the session, unless the recording is dropped
  template <class Message>
  std::optional<Message> parsed(const wire::Frame& frame) {
    Result<Message> message = parse_body<Message>(frame);
    if (message.ok()) return std::move(message).value();
    violation(message.error().message);
    return std::nullopt;
  }

  // peer_control.cc
  void on_heartbeat(const wire::Frame& frame);
  void on_command_result(const wire::Frame& frame);
  void on_clock_reply(const wire::Frame& frame, uint64_t received_ns);
  void on_bye(const wire::Frame& frame);
  void on_loaded_modules(const wire::Frame& frame);
  void on_want_function_filter(const wire::Frame& frame);
  void on_counters(const wire::Frame& frame);
  bool take_modules(const std::vector<storage::ModuleInfo>& infos);
  void take_clock_sync(std::optional<storage::ClockSync> sync);
  void send_acks(const SessionReport& report);
  void ack_recording_ended(uint32_t recording);
  void fail_commands(const std::string& reason);
  void sweep_control(SteadyTime now);
  void sweep_commands(SteadyTime now);

  // peer_session.cc
  SessionRef make_session(uint32_t recording, SystemTime start);
  Status charge_session(AgentSession& session);
  Status charge_stream(AgentSession& session);
  void charge_threads(AgentSession& session, uint32_t threads);
  void on_report(const SessionRef& session, SessionReport report);
  void on_opened(const SessionRef& session, const SessionReport::Opened& opened);
  void on_repeated(const SessionRef& session, const std::string& name);
  void on_failed(const SessionRef& session, const Error& error);
  void on_sealed(const SessionRef& session, const SessionReport::Sealed& sealed);
  void on_suspended(const SessionRef& session);
  void seal(storage::SessionState state, const std::string& reason);  // session_
  void interrupt_session();
  void sweep_sessions(SteadyTime now);
  void answer_starts();
  void order(std::function<Result<std::string>(storage::SessionWriter&)> act,
             Answer<std::string> done);
  void store_clock_sync();
  void store_function_filter();
  void store_lost_without_stream(uint64_t count);
  uint64_t device_now_ns() const;

  IngestCore& core_;
  asio::io_context& io_;
  AgentSnapshot agent_;
  storage::ResumeKey resume_key_;  // in its sessions' files and in its Welcome, and nowhere else
  std::shared_ptr<principal::Account> account_;  // of whoever connected last
  wire::Hello hello_;                            // the last one

  std::shared_ptr<Link> control_;
  std::shared_ptr<DataLane> data_;
  std::shared_ptr<AgentDecoder> pages_;  // of data_; from its welcome on
  bool control_up_ = false;              // welcomed
  bool data_up_ = false;
  bool was_connected_ = false;
  bool draining_ = false;  // one of the two is gone, the other is read to its end
  std::string drain_reason_;
  bool said_goodbye_ = false;
  bool detaching_ = false;
  bool stopping_ = false;  // the collector is
  SteadyTime half_since_{};
  SteadyTime down_since_{};
  SteadyTime control_heard_at_{};
  SteadyTime control_sent_at_{};
  uint64_t control_sent_frames_ = 0;
  uint64_t counted_control_bytes_ = 0;

  SessionRef session_;               // open, or interrupted
  std::vector<SessionRef> sealing_;  // ended, on their way to being sealed
  Intake intake_ = Intake::kNone;
  uint32_t intake_recording_ = 0;
  uint32_t sessions_begun_ = 0;
  uint32_t streams_opened_ = 0;  // on this connection
  uint32_t finished_recording_ =
      0;  // this one and those before are over for good: repeats are dropped
  std::unordered_map<uint32_t, storage::ThreadIdentity, KeyedHash> streams_;  // that are open
  std::map<uint32_t, storage::ModuleInfo> modules_;  // for names to function ids
  uint64_t welcome_ticket_ =
      0;  // of the positions that the data channel's Welcome waits for; 0 none
  uint64_t next_ticket_ = 1;

  PendingCommands commands_;
  std::vector<PendingStart> starts_;

  ClockProbes clock_probes_;
  std::optional<storage::ClockSync> clock_sync_;
  std::optional<storage::FunctionFilter> function_filter_;
  CounterWatch counter_watch_;
  bool counters_changed_ = false;                     // since the agent was shown
  bool filter_asked_ = false;                         // on this control channel
  std::optional<principal::Lease> requested_memory_;  // for modules that came before a recording
};

}  // namespace collect::ingest
