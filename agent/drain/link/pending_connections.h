// Connections that an agent that listens has accepted, and that are no channel of the pair yet: the
// peer has to send Dial, and to answer the Hello with a valid Challenge. So a peer without the
// token takes no channel, and a silent one keeps no collector out.
//
// Link owns it and the listener, and gives it what the listener accepted. Drain thread only.
// Nothing allocates.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>

#include "agent/drain/link/channel.h"
#include "agent/drain/link/hello.h"

namespace collect::agent {

inline constexpr uint32_t kMaxPending = 4;
inline constexpr size_t kMaxDialBytes = 1024;

class PendingConnections {
 public:
  // All of them are the Link's, and outlive this.
  void prepare(ProcessIdentity& identity, Channel& control, Channel& data);

  // Takes over `accepted`. When every slot is taken, the connection that has been silent longest is
  // closed.
  void add(uint64_t now_ms, const Socket& accepted);
  // Reads what has come and watches the deadlines. A connection whose Challenge holds becomes the
  // channel that it asked for, if that one is closed; the channel is at kGreeting then.
  void step(uint64_t now_ms);
  bool any() const;
  void close();
  // Room for kMaxPending; how many were filled.
  size_t fill_poll(pollfd* out) const;

 private:
  struct Pending {
    Socket socket;
    uint64_t deadline_ms = 0;
    bool greeted = false;  // its Dial was answered with a Hello
    bool is_data = false;
    Nonces nonces;
    size_t used = 0;
    uint8_t bytes[kMaxDialBytes];
  };

  void step_one(uint64_t now_ms, Pending& pending);
  void dialled(Pending& pending, const wire::Frame& frame);
  void answered(uint64_t now_ms, Pending& pending, const wire::Frame& frame);
  Channel& channel_of(const Pending& pending) { return pending.is_data ? *data_ : *control_; }

  // Constant after prepare().
  ProcessIdentity* identity_ = nullptr;
  Channel* control_ = nullptr;
  Channel* data_ = nullptr;

  Pending pending_[kMaxPending];
};

}  // namespace collect::agent
