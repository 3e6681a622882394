// One process, driven by hand: the test runs its io thread, and says what time it is.
#pragma once

#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/peer/peer.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"

namespace collect::ingest {

// Everything that is asked for before a recording.
class Wishes final : public IngestObserver {
 public:
  explicit Wishes(Reported& reported) : reported_(reported) {}
  void agent_changed(const AgentSnapshot& agent) override {
    agents.push_back(agent);
    reported_.agent_changed(agent);
  }
  void agent_removed(AgentId id) override { reported_.agent_removed(id); }
  void session_changed(const SessionSnapshot& session) override {
    reported_.session_changed(session);
  }
  void filter_wanted(const AgentSnapshot& agent, FilterRequest wanted) override {
    EXPECT_EQ(agent.process_name, "fake");
    wishes.push_back(std::move(wanted));
  }
  std::vector<FilterRequest> wishes;
  std::vector<AgentSnapshot> agents;  // each time that one was shown

 private:
  Reported& reported_;
};

class PeerTest : public IngestTest {
 protected:
  ~PeerTest() override {
    if (peer_) peer_->drop_links("the test is over");
    run();
    peer_.reset();
    if (core_) core_->stop_threads();
    run();  // what is under way holds accounts of the core
  }

  // With options_ as the test left them.
  void begin() {
    core_ = std::make_unique<IngestCore>(options_, *fs_, watching_);
    storage::ResumeKey key;
    key.bytes.fill(9);
    peer_ = std::make_shared<Peer>(*core_, loop_.io(),
                                   agent_from_hello(hello(wire::CHANNEL_CONTROL)), key);
  }
  wire::Hello hello(wire::Channel channel) const {
    wire::Hello hello = fakes::FakeAgent(process_).hello(channel);
    hello.set_recording(said_recording_);
    hello.set_is_recording(said_recording_ != 0);
    hello.set_sender_pid(sender_pid_);
    hello.set_pid_namespace(pid_namespace_);
    return hello;
  }
  fakes::FrameSocket adopt(wire::Channel channel, bool is_new = false,
                           const std::string& dialled = "") {
    auto [link, other] = loop_.link();
    if (is_local_) link->set_principal(principal::Principal::of_uid(::getuid()));
    peer_->adopt(std::move(link), hello(channel), dialled, is_new);
    run();
    return std::move(other);
  }
  // Both channels, and what they are welcomed with.
  void connect(const std::string& dialled = "") {
    control_ = adopt(wire::CHANNEL_CONTROL, true, dialled);
    data_ = adopt(wire::CHANNEL_DATA, false, dialled);
    ASSERT_TRUE(loop_.run_until([this] { return peer_->connected(); }));
    const auto welcome = next(control_, wire::FrameType::kWelcome);
    ASSERT_TRUE(welcome.has_value());
    control_welcome_ = welcome->parsed<wire::Welcome>();
  }
  // The next frame of this type that was sent by now, others are skipped.
  std::optional<fakes::ReceivedFrame> next(fakes::FrameSocket& socket, wire::FrameType type) {
    run();
    return socket.receive_type(type, milliseconds{0});
  }
  std::optional<fakes::ReceivedFrame> wait_for(fakes::FrameSocket& socket, wire::FrameType type) {
    std::optional<fakes::ReceivedFrame> frame;
    EXPECT_TRUE(loop_.run_until(
        [&] { return (frame = socket.receive_type(type, milliseconds{0})).has_value(); }));
    return frame;
  }
  void say(fakes::FrameSocket& socket, wire::FrameType type,
           const google::protobuf::MessageLite& message) {
    ASSERT_TRUE(socket.send(type, message));
    run();
  }
  void start_recording(uint32_t recording = 1) {
    wire::RecordingStart start;
    start.set_recording(recording);
    start.set_atf_version(2);
    start.set_start_ns(1'000'000);
    say(data_, wire::FrameType::kRecordingStart, start);
  }
  void open_stream(uint32_t stream, uint32_t recording = 1) {
    wire::StreamOpen open;
    open.set_recording(recording);
    open.set_stream_id(stream);
    open.set_thread_id(stream + 100);
    open.set_thread_name("thread " + std::to_string(stream));
    say(data_, wire::FrameType::kStreamOpen, open);
  }
  void send_events(uint32_t stream, uint64_t first, uint32_t count) {
    ASSERT_TRUE(data_.send_page(fakes::index_page_header(stream, first, count),
                                fakes::index_events(first, count)));
    run();
  }
  void end_recording(uint32_t recording = 1) {
    wire::RecordingEnd end;
    end.set_recording(recording);
    end.set_reason("exit");
    say(data_, wire::FrameType::kRecordingEnd, end);
  }
  void close_stream(uint32_t stream, uint64_t index_count) {
    wire::StreamClose close;
    close.set_stream_id(stream);
    close.set_index_count(index_count);
    say(data_, wire::FrameType::kStreamClose, close);
  }
  uint64_t used(principal::Resource resource) const { return core_->budget.used(resource); }
  // Recordings that the agent was asked to be over, in order.
  std::vector<uint32_t> ended() {
    std::vector<uint32_t> ended;
    while (const auto frame = next(control_, wire::FrameType::kAck)) {
      const auto ack = frame->parsed<wire::Ack>();
      if (ack.recording_ended() != 0) ended.push_back(ack.recording_ended());
    }
    return ended;
  }
  // The first that is shown so, as soon as it is.
  std::optional<SessionSnapshot> session_in(SessionState state) {
    return when([state](const SessionSnapshot& one) { return one.state == state; });
  }
  std::optional<SessionSnapshot> when(const std::function<bool(const SessionSnapshot&)>& fits) {
    EXPECT_TRUE(loop_.run_until([&] { return reported_.was_shown(fits); }));
    return reported_.was_shown(fits) ? reported_.session([](const auto&) { return true; })
                                     : std::nullopt;
  }
  // The same, of what is shown when time passes.
  bool shows(const std::function<bool(const SessionSnapshot&)>& fits) {
    return loop_.run_until([&] {
      sweep(2 * kProgressInterval);
      return reported_.was_shown(fits);
    });
  }
  const AgentSnapshot& shown() const { return watching_.agents.back(); }
  // Everything that can be done now, on the data threads too.
  void run() { loop_.run_with(core_ ? &core_->data_threads : nullptr); }
  bool sweep(milliseconds later, bool may_linger = true) {
    const bool is_kept = peer_->sweep(std::chrono::steady_clock::now() + later, may_linger);
    run();
    return is_kept;
  }

  IoLoop loop_;
  Wishes watching_{reported_};
  fakes::FakeProcess process_;
  uint32_t said_recording_ = 0;
  uint32_t sender_pid_ = 0;
  uint64_t pid_namespace_ = 0;
  bool is_local_ = false;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<Peer> peer_;
  fakes::FrameSocket control_;
  fakes::FrameSocket data_;
  wire::Welcome control_welcome_;
};

inline constexpr milliseconds kEarly{
    2'000};                              // before a deadline: longer than a loaded machine takes
inline constexpr milliseconds kLate{1};  // behind it

}  // namespace collect::ingest
