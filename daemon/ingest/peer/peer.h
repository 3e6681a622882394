// One process that streams, or has streamed: its two links, and how the parts that deal with what
// comes over them work together. DAEMON.md "One process" lists the parts.
//
// Belongs to one io thread from its first hello to the end: links, timers and session reports of
// this process all run there, so nothing here or in the parts is locked. Others reach it by posting
// to that thread (Ingest does). The peer outlives its links: it waits for the process to come back
// and resume.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/clock/clock_probes.h"
#include "daemon/ingest/lane/agent_decoder.h"
#include "daemon/ingest/lane/data_lane.h"
#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/link/link.h"
#include "daemon/ingest/link/sender_process.h"
#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/peer/agent_commands.h"
#include "daemon/ingest/peer/agent_profile.h"
#include "daemon/ingest/peer/agent_recordings.h"
#include "daemon/ingest/peer/control_frames.h"
#include "daemon/ingest/peer/keep_alive.h"
#include "daemon/ingest/session/core.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/session_layout.h"
#include "storage/model/thread_pattern.h"

namespace collect::ingest {

class Peer final : public LinkOwner,
                   public LaneOwner,
                   public AgentConnection,
                   public std::enable_shared_from_this<Peer> {
 public:
  Peer(IngestCore& core, asio::io_context& io, AgentSnapshot agent, const storage::ResumeKey& key);
  ~Peer() override;

  // What a connection has to know that claims to be of this process.
  const storage::ResumeKey& resume_key() const { return recordings_.resume_key(); }
  // A connection whose hello was checked, also for the resume key; or it `is_new`, and is given the
  // key. Replaces what the process had on that channel.
  void adopt(std::shared_ptr<Link> link, const wire::Hello& hello, const std::string& dialled,
             bool is_new);
  // A session that a former collector left unsealed; this process may come back for it. Before any
  // connection.
  void restore(const storage::SessionPath& session_path, const storage::ResumeKey& key,
               uint32_t recording, SystemTime start) {
    recordings_.restore(session_path, key, recording, start);
  }
  // Time passes. False: this peer is over and may be removed. Without `may_linger`, one that is
  // away and has no session is over at once.
  bool sweep(SteadyTime now, bool may_linger);

  void start_recording(Answer<SessionSnapshot> done) { commands_.start_recording(std::move(done)); }
  void stop_recording(Answer<SessionSnapshot> done);  // answers when sealed
  void command(wire::Command command, Answer<wire::CommandResult> done) {
    commands_.issue(std::move(command), std::move(done));
  }
  void detach(Answer<AgentSnapshot> done);
  // Annotates the session that records now; kNotFound without one.
  void annotate(uint64_t at_ns, const std::string& text, Answer<uint64_t> done);
  void roll_container(Answer<std::string> done);
  void cut(Answer<storage::SessionCut> done);
  void watch_events(EventsWanted wanted, const Answer<std::string>& done);
  // The agent holds it from now on: noted in the session that records, and in later ones.
  void note_function_filter(const storage::FunctionFilter& filter) { recordings_.keep(filter); }
  // The outcome of the start filter. Called before the agent gets it, so that its recording finds
  // it here.
  void note_start_filter(StartFilter outcome, storage::FunctionFilter filter);
  // The collector stops: its session is left to the next one, as far as its agent can come back.
  void shut_down();
  // Ends both links, so that the side that dialled connects again; the session waits.
  void drop_links(const std::string& reason);

  const AgentSnapshot& agent() const { return profile_.shown(); }
  // Modules of the current recording, or the last one.
  std::vector<storage::ModuleInfo> modules() const { return modules_->all(); }
  // Those that record on this connection, by id.
  std::vector<storage::ThreadIdentity> threads() const {
    return decoder_ ? decoder_->threads() : std::vector<storage::ThreadIdentity>();
  }
  bool connected() const override { return control_up_ && data_up_; }

  // LinkOwner and LaneOwner
  void on_frame(Link& link, const wire::Frame& frame) override;
  void on_bad_frame(Link& link, wire::FrameError error) override;
  void on_link_end(Link& link, const std::string& reason) override;
  bool on_data_frame(const wire::Frame& frame) override;
  void on_data_fault(const Refusal& fault) override { refuse(fault); }
  void on_data_end(const std::error_code& error) override;
  std::chrono::nanoseconds read_wait() override;

 private:
  // AgentConnection
  void send(wire::FrameType type, const google::protobuf::MessageLite& message) override;
  std::shared_ptr<AgentConnection> share() override { return shared_from_this(); }
  void on_storing_changed() override;
  void on_opened() override { commands_.answer_starts(); }
  void on_positions(const std::vector<storage::StreamPosition>* positions) override {
    welcome_data(positions);
  }
  void on_hot(const std::vector<HotFunction>& functions) override;
  void on_not_stored(const Refusal& refusal) override;
  void on_bad_data(const std::string& what) override;
  void on_sealed() override;

  void adopt_control(bool is_new);
  void welcome_data(const std::vector<storage::StreamPosition>* positions);
  wire::Welcome welcome() const;
  void became_connected();
  Verdict on_clock_reply(const wire::ClockReply& reply);
  Verdict on_bye(const wire::Bye& bye);
  Verdict on_refuse(const wire::Refuse& refusal);
  void take_clock_sync(const std::optional<storage::ClockSync>& sync);

  void drain_data(const std::string& reason);
  void await_goodbye(const std::string& reason);
  void say_goodbye();
  void refuse(const Refusal& refusal);
  void refuse_both(const Refusal& refusal);
  void links_are_down(const std::string& reason);
  void sweep_control(SteadyTime now);
  // Null: there is none, and that is answered.
  template <class T>
  AgentSession* recording_for(const Answer<T>& done) const;

  IngestCore& core_;
  asio::io_context& io_;
  AgentProfile profile_;
  SenderProcess sender_;
  const std::shared_ptr<LoadedModules> modules_ = std::make_shared<LoadedModules>();
  AgentRecordings recordings_;
  AgentCommands commands_;
  ControlFrames control_frames_;
  KeepAlive keep_alive_;  // of control_
  ClockProbes clock_probes_;

  std::shared_ptr<Link> control_;
  std::shared_ptr<DataLane> data_;
  std::shared_ptr<AgentDecoder> decoder_;  // of data_
  bool control_up_ = false;                // welcomed
  bool data_up_ = false;
  bool draining_ = false;  // one of the two is gone, the other is read to its end
  std::string drain_reason_;
  bool said_goodbye_ = false;
  bool detaching_ = false;
  bool stopping_ = false;  // the collector is
  SteadyTime half_since_{};
  SteadyTime down_since_{};
  uint64_t control_received_ns_ = 0;  // the frame that is looked at
  uint64_t counted_control_bytes_ = 0;
};

}  // namespace collect::ingest
