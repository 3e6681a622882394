// A collector that does what a test says: blocking sockets, the frame codec, libprotobuf.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/wire/frame_decoder.h"
#include "proto/wire/wire.pb.h"
#include "tests/fakes/handshake.h"

namespace collect::agent {

// One frame, with bytes of its own.
struct GotFrame {
  wire::FrameType type{};
  std::string body;
  PageHeader page{};
  std::vector<uint8_t> page_bytes;
};

// One connection. Every wait has a generous end, after which the test fails.
class Peer {
 public:
  Peer() = default;
  explicit Peer(int fd) : fd_(fd) {}
  Peer(Peer&& other) noexcept;
  Peer& operator=(Peer&& other) noexcept;
  ~Peer() { close(); }

  static Peer dial_tcp(uint16_t port);
  static Peer dial_unix(const std::string& path);

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void close();

  // The next frame; nothing at the end of the stream.
  std::optional<GotFrame> next();
  // Frames up to and with one of this type; the others are kept in `skipped`.
  std::optional<GotFrame> next_of(wire::FrameType type, std::vector<GotFrame>* skipped = nullptr);
  template <class Message>
  Message expect(wire::FrameType type) {
    Message message;
    const auto frame = next_of(type);
    if (!frame || !message.ParseFromString(frame->body)) fail("expected frame did not come");
    return message;
  }
  // True when the agent closed the connection; frames before that are skipped.
  bool ends();

  void send_frame(wire::FrameType type, const std::string& body);
  void send_bytes(const std::string& bytes);
  template <class Message>
  void send(wire::FrameType type, const Message& message) {
    send_frame(type, message.SerializeAsString());
  }
  // Takes this many bytes off the socket, wherever frames begin and end.
  size_t swallow(size_t count);

 private:
  static void fail(const char* what);
  bool read_some();

  int fd_ = -1;
  std::vector<uint8_t> buffer_;
};

// What came of one stream and lane: records by number, and that none came twice or out of order.
struct StoredLane {
  uint64_t next = 0;
  uint64_t repeats = 0;  // records that were there already
  uint64_t jumps = 0;    // records that never came
  uint64_t lost_total = 0;
  uint32_t lost_reasons = 0;
  std::vector<uint8_t> bytes;
};

// Both channels of a process, and what they brought.
class ScriptedCollector {
 public:
  ScriptedCollector();  // listens on a free loopback port
  ~ScriptedCollector();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  Peer accept();
  // The whole handshake of an agent that connects. Resume positions from what is stored if
  // `resume`.
  // The agent takes a collector for dead that is silent for three times as long: no busy machine
  // is.
  void welcome_pair(bool resumed = false, uint32_t heartbeat_ms = 20'000);
  // The same with one that listens.
  void dial_pair(uint16_t port, bool resumed = false, uint32_t heartbeat_ms = 20'000);
  // Takes a hello, challenges its sender, takes the proof and checks it.
  wire::Hello challenge(Peer& peer, bool dialled = false);
  // Sends a Dial and takes the hello.
  wire::Hello dial(Peer& peer, wire::Channel channel);
  // The two halves of challenge(), of what comes behind the hello.
  void send_challenge(Peer& peer, const wire::Hello& hello, bool dialled);
  wire::Proof take_proof(Peer& peer, const wire::Hello& hello, bool dialled);

  // Takes the next data frame into the books; nothing at the end of the stream.
  std::optional<GotFrame> take();
  // Takes frames up to and with the given type.
  GotFrame take_until(wire::FrameType type);
  // Takes pages until `lane` of the stream holds `count` records.
  void take_records(uint32_t stream_id, uint32_t lane, uint64_t count);

  wire::Ack ack() const;  // of everything stored; closed streams are said to be
  int listener() const { return listener_; }
  void send_ack() { control.send(wire::FrameType::kAck, ack()); }
  wire::CommandResult command(wire::Command command);
  // As one that was started again: nothing is stored any more.
  void forget();
  // Ends a recording as a collector does: takes everything up to RecordingEnd and seals.
  void seal();

  StoredLane& lane(uint32_t stream_id, uint32_t lane) { return lanes_[{stream_id, lane}]; }

  std::string id;                                 // that its challenges name; empty: none
  std::string token;                              // of this collector; empty: none
  std::string agent_token;                        // that the agent's proof must be of; empty: none
  std::string resume_key = fakes::fresh_nonce();  // that new processes are given
  std::set<std::string> known;                    // process ids that were given the key
  uint64_t features = 0;                          // what Welcome names
  uint64_t encoded_pages = 0;                     // taken
  Peer control;
  Peer data;
  wire::Hello control_hello;
  wire::Hello data_hello;
  std::vector<wire::Module> modules;
  std::map<uint32_t, wire::StreamOpen> opened;
  std::map<uint32_t, wire::StreamClose> closed;
  std::vector<wire::DetailState> detail_states;

 private:
  void greet_control(uint32_t heartbeat_ms);
  void greet_data(bool resumed);

  int listener_ = -1;
  uint16_t port_ = 0;
  uint64_t next_command_ = 1;
  std::map<std::string, wire::Challenge> challenges_;  // by the nonce of the hello
  std::map<std::pair<uint32_t, uint32_t>, StoredLane> lanes_;
};

}  // namespace collect::agent
