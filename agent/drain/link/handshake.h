// The handshake of a channel, from its Hello to the Welcome (WIRE.md "Opening a connection"): what
// is sent, what each frame means, and what was agreed. Sockets, time and what follows from a fault
// are the Link's, which owns it. Drain thread only. Nothing allocates.
#pragma once

#include <cstdint>

#include "agent/drain/link/channel.h"
#include "agent/drain/link/hello.h"
#include "agent/drain/link/stream_table.h"

namespace collect::agent {

inline constexpr uint32_t kMinHeartbeatMs = 50;
inline constexpr uint32_t kMaxHeartbeatMs = 60000;
inline constexpr uint32_t kDefaultHeartbeatMs = 1000;

// What a step of the handshake came to.
enum class HandshakeEvent : uint8_t {
  kNone,      // it continues, and something may be there to be sent
  kWelcomed,  // the channel is open
  kRefused,   // the frame was the collector's refusal
  kRefuse,    // `reason` is to be sent to the collector, and the link ends
  kBreak,     // the link ends, because of `reason`
};
struct HandshakeStep {
  HandshakeEvent event = HandshakeEvent::kNone;
  const char* reason = nullptr;  // static
  collect_wire_RefuseCode code = collect_wire_RefuseCode_REFUSE_PROTOCOL;
};

class Handshake {
 public:
  // All of them outlive this. `streams` gets what the collector holds.
  void prepare(ProcessIdentity& identity, StreamTable& streams, Channel& control, Channel& data);

  HandshakeStep send_hello(Channel& channel);
  // The next frame is taken here, of a channel that was greeted: not while its Proof is due.
  static bool wants_frame(const Channel& channel);
  HandshakeStep take(Channel& channel, const wire::Frame& frame);
  // Whether the Proof is due, and may be sent.
  bool may_prove(const Channel& channel) const;
  HandshakeStep send_proof(Channel& channel);

  // ---- as the last Welcomes said
  uint32_t heartbeat_ms() const { return heartbeat_ms_; }
  uint64_t features() const { return features_; }  // of the data channel
  bool resumed() const { return resumed_; }        // the same
  const char* collector() const { return collector_; }

 private:
  HandshakeStep challenged(Channel& channel, Bytes body);
  HandshakeStep welcomed(Channel& channel, Bytes body);
  bool is_data(const Channel& channel) const { return &channel == data_; }

  // Constant after prepare().
  ProcessIdentity* identity_ = nullptr;
  StreamTable* streams_ = nullptr;
  Channel* control_ = nullptr;
  Channel* data_ = nullptr;

  uint32_t heartbeat_ms_ = kDefaultHeartbeatMs;
  uint64_t features_ = 0;
  bool resumed_ = false;
  char collector_[64];  // printable
};

}  // namespace collect::agent
