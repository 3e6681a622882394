// The recordings of one process: the one that is written or waits for its agent, those on their way
// to being sealed, and which are over for good, so that what the agent repeats of them is dropped.
// The frames that begin and end them are taken here; between these the lane's turns store what
// comes (DataFrames). Acks are sent from here.
//
// Belongs to the io thread of its Peer, which owns it; what the sessions report comes there.
#pragma once

#include <google/protobuf/message_lite.h>

#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ingest/lane/agent_decoder.h"
#include "daemon/ingest/link/verdict.h"
#include "daemon/ingest/peer/agent_filter.h"
#include "daemon/ingest/peer/agent_profile.h"
#include "daemon/ingest/peer/agent_session.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

// The connection to an agent, as the parts of its Peer use it. Its io thread only.
class AgentConnection {
 public:
  virtual ~AgentConnection() = default;
  // Both channels of the agent are welcomed.
  virtual bool connected() const = 0;
  // On the control channel. Nothing happens while that is not welcomed. Sending may fail and end
  // it.
  virtual void send(wire::FrameType type, const google::protobuf::MessageLite& message) = 0;

  // ---- of the recordings
  // Keeps them while one of their reports is taken.
  virtual std::shared_ptr<AgentConnection> share() = 0;
  // storing() is another one, or none.
  virtual void on_storing_changed() = 0;
  // The current one has a name now.
  virtual void on_opened() = 0;
  // After want_positions(). Null: the session can't continue.
  virtual void on_positions(const std::vector<storage::StreamPosition>* positions) = 0;
  // Functions of the current one are called too often: the agent is to switch them off.
  virtual void on_hot(const std::vector<HotFunction>& functions) = 0;
  // This machine could not store it: an agent that is connected is to send it again.
  virtual void on_not_stored(const Refusal& refusal) = 0;
  // No collector could store what the agent sent.
  virtual void on_bad_data(const std::string& what) = 0;
  virtual void on_sealed() = 0;  // any of them
};

class AgentRecordings {
 public:
  AgentRecordings(IngestCore& core, asio::io_context& io, AgentProfile& profile,
                  AgentConnection& connection, LoadedModules& modules,
                  const storage::ResumeKey& key);

  const storage::ResumeKey& resume_key() const { return resume_key_; }
  // Open, or interrupted; null: none.
  AgentSession* current() const { return current_.get(); }
  // The current one, once it has a name.
  AgentSession* opened() const { return current_ && current_->opened ? current() : nullptr; }
  // The current one, while its data comes; null: what comes is dropped.
  AgentSession* storing() const;
  bool any() const { return current_ || !sealing_.empty(); }
  bool is_sealing() const { return !sealing_.empty(); }
  // Over for good.
  bool is_finished(uint32_t recording) const { return recording <= finished_; }

  // The recording of which the data channel brings the data; 0: of none.
  uint32_t incoming() const { return incoming_; }
  void take_in(uint32_t recording);
  // A new connection, whose data the decoder takes: no recording has begun on it.
  void restart(std::shared_ptr<AgentDecoder> decoder);
  // RecordingStart or RecordingEnd, between two turns. Not empty: the connection has to end; then
  // nothing has changed.
  Verdict take(const wire::Frame& frame);
  // Begins it, in place of the current one.
  Verdict begin(const wire::RecordingStart& start);
  // A session that a former collector left unsealed; the agent may come back for it. Before any
  // connection.
  void restore(const storage::SessionPath& session_path, const storage::ResumeKey& key,
               uint32_t recording, SystemTime start);
  // Positions of the current one, when everything that came before is counted.
  void want_positions();
  void end_connection();  // no one waits for positions, and no data comes

  // ---- the current one; nothing happens without one
  // The agent has ended it.
  void end(const wire::RecordingEnd& end);
  void seal(storage::SessionState state, const std::string& reason);
  // Seals it, for good.
  void give_up(const std::string& reason);
  // The collector stops: left to the next one, unless this one is there for one program alone.
  void leave();
  void wait_for_agent();
  void note(const std::string& text);
  // Answered when it is sealed, or the last of those that are on their way.
  void when_sealed(Answer<SessionSnapshot> done);

  // For this one and later ones.
  void keep(const storage::ClockSync& sync);
  void keep(const storage::FunctionFilter& filter);
  // What it was to begin with.
  void keep_start_filter(storage::FunctionFilter filter);
  // The agent has switched these off, and more calls of them do not come.
  void keep_switched_off(const std::vector<HotFunction>& functions, uint64_t at_ns);
  // The collector's clock, moved by what the clock probes found; before any probe they are taken
  // for equal, which on one machine they are.
  uint64_t device_now_ns() const;

  // Informs the agent that it need not keep the recording, unless that is sent with its seal.
  void ack_ended(uint32_t recording);
  void sweep(SteadyTime now);

 private:
  using SessionRef = std::shared_ptr<AgentSession>;

  Verdict on_start(const wire::RecordingStart& start);
  Verdict on_end(const wire::RecordingEnd& end);
  SessionRef make_session(uint32_t recording, SystemTime start);
  void finish(uint32_t recording) { finished_ = std::max(finished_, recording); }
  void seal_one(SessionRef session, storage::SessionState state, const std::string& reason);
  void on_report(const SessionRef& session, const SessionReport& report);
  void on_opened(const SessionRef& session, const SessionReport::Opened& opened);
  void on_repeated(const SessionRef& session, const std::string& name);
  void on_failed(const SessionRef& session, const Error& error);
  void on_sealed(const SessionRef& session, const SessionReport::Sealed& sealed);
  void on_suspended(const SessionRef& session);
  void send_acks(const SessionReport& report);

  IngestCore& core_;
  asio::io_context& io_;
  AgentProfile& profile_;
  AgentConnection& connection_;
  LoadedModules& modules_;

  storage::ResumeKey resume_key_;  // in the sessions' files and in the Welcome, and nowhere else
  SessionRef current_;
  std::vector<SessionRef> sealing_;
  std::shared_ptr<AgentDecoder> decoder_;  // of the data that comes
  uint32_t incoming_ = 0;
  uint32_t begun_ = 0;
  uint32_t finished_ = 0;          // this one and those before
  uint64_t positions_ticket_ = 0;  // of those that are waited for; 0: none are
  uint64_t last_ticket_ = 0;
  std::optional<storage::ClockSync> clock_sync_;
  AgentFilter filter_;
};

}  // namespace collect::ingest
