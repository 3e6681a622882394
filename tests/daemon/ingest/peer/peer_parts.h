// The parts of a Peer, put together as it has them and called by the test. No socket: what is sent
// to the agent is kept, and its frames are given to the parts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ingest/peer/control_frames.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/storage/fault_fs.h"

namespace collect::ingest {

// To the agent.
struct SentFrames {
  bool is_connected = true;
  std::vector<fakes::ReceivedFrame> frames;

  void send(wire::FrameType type, const google::protobuf::MessageLite& message) {
    if (!is_connected) return;
    const std::string body = message.SerializeAsString();
    frames.push_back({type, std::vector<uint8_t>(body.begin(), body.end())});
  }
  // Those of one type, which are taken out of `frames`.
  template <class Message>
  std::vector<Message> take(wire::FrameType type) {
    std::vector<Message> taken;
    std::erase_if(frames, [&](const fakes::ReceivedFrame& frame) {
      if (frame.type != type) return false;
      taken.push_back(frame.parsed<Message>());
      return true;
    });
    return taken;
  }
};

// What the recordings tell the peer.
struct HeardRecordings {
  int opened = 0;
  int sealed = 0;
  std::vector<std::optional<std::vector<storage::StreamPosition>>> positions;
  std::vector<HotFunction> hot;
  std::vector<Refusal> not_stored;
  std::vector<std::string> bad_data;
  std::vector<uint32_t> storing;  // each time that it changed; 0: none
};

// As Peer.
class PeerParts final : public AgentConnection, public std::enable_shared_from_this<PeerParts> {
 public:
  PeerParts(IngestCore& core, asio::io_context& io, const wire::Hello& hello,
            const storage::ResumeKey& key)
      : profile(core, agent_from_hello(hello)),
        recordings(core, io, profile, *this, *modules, key),
        commands(profile, recordings, *this),
        control_frames(core.observer, profile, recordings, commands, *modules),
        core_(core) {
    profile.greet(hello, principal::Principal::of_uid(1), "peer", "");
    connect_data();
    heard.storing.clear();
  }
  // A new connection for data.
  void connect_data() {
    decoder = std::make_shared<AgentDecoder>(0, core_.counters, core_.options.threads_per_agent,
                                             profile.account(), modules);
    recordings.restart(decoder);
  }

  bool connected() const override { return control.is_connected; }
  void send(wire::FrameType type, const google::protobuf::MessageLite& message) override {
    control.send(type, message);
  }
  std::shared_ptr<AgentConnection> share() override { return shared_from_this(); }
  void on_storing_changed() override {
    const AgentSession* session = recordings.storing();
    heard.storing.push_back(session != nullptr ? session->recording : 0);
  }
  void on_opened() override {
    ++heard.opened;
    commands.answer_starts();
  }
  void on_positions(const std::vector<storage::StreamPosition>* positions) override {
    heard.positions.push_back(positions != nullptr ? std::optional(*positions) : std::nullopt);
  }
  void on_hot(const std::vector<HotFunction>& functions) override {
    heard.hot.insert(heard.hot.end(), functions.begin(), functions.end());
  }
  void on_not_stored(const Refusal& refusal) override { heard.not_stored.push_back(refusal); }
  void on_bad_data(const std::string& what) override { heard.bad_data.push_back(what); }
  void on_sealed() override { ++heard.sealed; }

  HeardRecordings heard;
  SentFrames control;
  AgentProfile profile;
  const std::shared_ptr<LoadedModules> modules = std::make_shared<LoadedModules>();
  AgentRecordings recordings;
  AgentCommands commands;
  ControlFrames control_frames;
  std::shared_ptr<AgentDecoder> decoder;

 private:
  IngestCore& core_;
};

class PeerPartsTest : public IngestTest {
 protected:
  PeerPartsTest() { options_.data_threads = 1; }
  ~PeerPartsTest() override {
    if (parts_) parts_->recordings.seal(storage::SessionState::kRecovered, "the test is over");
    run();
    parts_.reset();
    if (core_) core_->stop_threads();
    run();
  }

  // With options_ and process_ as the test left them.
  void begin() {
    parts_.reset();  // what they have is of the core before
    core_ = std::make_unique<IngestCore>(options_, *fs_, reported_);
    storage::ResumeKey key;
    key.bytes.fill(9);
    parts_ = std::make_shared<PeerParts>(*core_, loop_.io(), hello(), key);
  }
  wire::Hello hello() const { return fakes::FakeAgent(process_).hello(wire::CHANNEL_DATA); }
  static wire::RecordingStart start_of(uint32_t recording) {
    wire::RecordingStart start;
    start.set_recording(recording);
    start.set_atf_version(2);
    start.set_start_ns(1'000'000);
    return start;
  }
  static wire::RecordingEnd end_of(uint32_t recording) {
    wire::RecordingEnd end;
    end.set_recording(recording);
    end.set_reason("exit");
    return end;
  }
  static wire::StreamOpen stream_of(uint32_t recording, uint32_t stream) {
    wire::StreamOpen open;
    open.set_recording(recording);
    open.set_stream_id(stream);
    open.set_thread_id(stream + 100);
    open.set_thread_name("thread " + std::to_string(stream));
    return open;
  }
  static wire::Modules modules_of(std::initializer_list<const char*> paths) {
    wire::Modules modules;
    for (const char* path : paths) {
      wire::Module& module = *modules.add_modules();
      module.set_module_id(static_cast<uint32_t>(modules.modules_size()));
      module.set_path(path);
    }
    return modules;
  }
  // The recordings' own way: the data channel brings this one.
  Verdict record(uint32_t recording) {
    parts_->recordings.take_in(recording);
    const Verdict verdict = parts_->recordings.begin(start_of(recording));
    run();
    return verdict;
  }
  // Why the connection has to end after this frame; empty: it continues.
  template <class Part>
  std::string said(Part& part, wire::FrameType type, const google::protobuf::MessageLite& message) {
    const std::string body = message.SerializeAsString();
    wire::Frame frame;
    frame.type = type;
    frame.body = Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size());
    verdict_ = part.take(frame);
    run();
    return verdict_ ? verdict_->reason : "";
  }
  // The same of the data channel, as a lane takes it.
  std::string data(wire::FrameType type, const google::protobuf::MessageLite& message) {
    return data(fakes::frame_bytes(type, message));
  }
  std::string data(const std::vector<uint8_t>& bytes) {
    LaneTurn turn;
    PageUnpacker unpacker;
    const auto take = [&](StoredSession* session) {
      size_t taken = 0;
      return parts_->decoder->take(bytes, session, unpacker, turn, taken);
    };
    if (AgentSession* session = recordings().storing()) {
      session->queue->push([&](StoredSession& stored) { return take(&stored); });
      run();
    } else {
      EXPECT_TRUE(take(nullptr).ok());
    }
    verdict_.reset();
    if (turn.end == LaneTurn::End::kFault) verdict_ = turn.fault;
    if (turn.end == LaneTurn::End::kFrame) {
      wire::Frame frame;
      frame.type = turn.frame_type;
      frame.body = turn.frame_body;
      verdict_ = parts_->recordings.take(frame);
      run();
    }
    return verdict_ ? verdict_->reason : "";
  }
  std::string control(wire::FrameType type, const google::protobuf::MessageLite& message) {
    return said(parts_->control_frames, type, message);
  }
  // Recordings that the agent was asked to be over.
  std::vector<uint32_t> ended() {
    std::vector<uint32_t> ended;
    for (const wire::Ack& ack : parts_->control.take<wire::Ack>(wire::FrameType::kAck)) {
      if (ack.recording_ended() != 0) ended.push_back(ack.recording_ended());
    }
    return ended;
  }
  storage::Manifest manifest_of(const SessionSnapshot& session) {
    const auto manifest = storage::read_manifest(posix_, session.directory);
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? *manifest : storage::Manifest();
  }
  // Of the one that was shown to be over last.
  storage::Manifest sealed_manifest() {
    EXPECT_TRUE(sealed().has_value());
    return sealed() ? manifest_of(*sealed()) : storage::Manifest();
  }
  std::optional<SessionSnapshot> sealed() {
    const auto is_sealed = [](const SessionSnapshot& one) { return is_over(one.state); };
    EXPECT_TRUE(loop_.run_until([&] { return reported_.was_shown(is_sealed); }));
    return reported_.was_shown(is_sealed) ? reported_.session(is_sealed) : std::nullopt;
  }
  // Everything that can be done now, on the data threads and the sealing threads too.
  void run() {
    loop_.run_with(core_ ? &core_->data_threads : nullptr);
    loop_.run_with(core_ ? &core_->seal_threads : nullptr);
  }
  AgentRecordings& recordings() { return parts_->recordings; }
  HeardRecordings& heard() { return parts_->heard; }
  uint64_t used(principal::Resource resource) const { return core_->budget.used(resource); }

  IoLoop loop_;
  fakes::FakeProcess process_;
  storage::test::FaultFs faulty_;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<PeerParts> parts_;
  Verdict verdict_;
};

}  // namespace collect::ingest
