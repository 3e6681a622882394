// The pair of connections to one collector: connecting or listening, both handshakes, and finding
// out that it is gone. Drain thread only, but for prepare(). Nothing allocates. A connection to an
// agent that listens waits in PendingConnections until it is a channel of the pair.
//
// A pair lives and dies together. What is sent and received on it once it is up is not its
// business.
#pragma once

#include <poll.h>

#include <cstdint>

#include "agent/drain/link/channel.h"
#include "agent/drain/link/collector_list.h"
#include "agent/drain/link/handshake.h"
#include "agent/drain/link/hello.h"
#include "agent/drain/link/pending_connections.h"
#include "agent/drain/link/stream_table.h"
#include "agent/settings.h"
#include "agent/transport/address.h"

namespace collect::agent {

inline constexpr uint64_t kFirstRetryMs = 50;
inline constexpr uint64_t kLastRetryMs = 2000;
// How long a collector that went away and said that it would return is waited for.
inline constexpr uint64_t kReturnMs = 30000;
inline constexpr uint64_t kStableMs =
    5000;  // a link that held this long starts the intervals again
inline constexpr uint32_t kDeadIntervals = 3;
inline constexpr uint64_t kAcceptPauseMs =
    100;  // after the system had no descriptor or memory for one
inline constexpr uint64_t kRefusedUserLogMs = 10000;  // between lines about users turned away
inline constexpr size_t kMaxLinkPolls = 3 + kMaxPending;

// Milliseconds before attempt `attempt` (counting from 0) after a failure: growing to kLastRetryMs,
// at least half of it, the rest by `random`.
uint64_t retry_delay_ms(uint32_t attempt, uint64_t random);

class Link {
 public:
  // Resolves the address; null or a static sentence. On the thread that starts the agent.
  const char* prepare(const Settings& settings, StreamTable& streams);

  // Connects, accepts, shakes hands, watches deadlines. Cheap when there is nothing to do.
  void step(uint64_t now_ms);

  bool is_up() const {
    return control_.step == ChannelStep::kOpen && data_.step == ChannelStep::kOpen;
  }
  // True once after the pair has come up.
  bool take_came_up();
  // Whether the collector holds the recording: Welcome.resumed of the data channel.
  bool resumed() const { return handshake_.resumed(); }
  // wire::Feature bits that both sides named, of the data channel.
  uint64_t features() const { return handshake_.features(); }
  uint32_t heartbeat_ms() const { return handshake_.heartbeat_ms(); }
  // The collector said that there is no use in trying again.
  bool given_up() const { return given_up_; }
  // Whether a collector may still come: an attempt is under way, or the last round was not tried
  // yet.
  bool is_opening() const;
  // Since when there is no link; meaningless while it is up.
  uint64_t down_since_ms() const { return down_since_ms_; }
  uint32_t rounds_failed() const { return rounds_failed_; }
  void retry_now() { retry_at_ms_ = 0; }

  Channel& control() { return control_; }
  Channel& data() { return data_; }
  void note_received(uint64_t now_ms) { received_ms_ = now_ms; }
  bool is_silent(uint64_t now_ms) const {
    return now_ms - received_ms_ > uint64_t{kDeadIntervals} * heartbeat_ms();
  }

  // The Bye was sent: the end of the link needs no report any more.
  void expect_end() { end_expected_ = true; }
  // Closes both; `why` is for the status. The next attempt is scheduled.
  void break_link(uint64_t now_ms, const char* why);
  // Tells the collector why on `channel`, then breaks the link.
  void refuse(uint64_t now_ms, Channel& channel, collect_wire_RefuseCode code, const char* reason);
  void refused(uint64_t now_ms, const Channel& channel, Bytes body);
  // It said Bye. One that does not return has no use for what an agent without a spool records.
  void collector_leaves(uint64_t now_ms, bool will_return);
  // It said that it would, and not long ago.
  bool collector_returns(uint64_t now_ms) const { return now_ms < returns_until_ms_; }
  // Reads what `channel` has; breaks the link on an end or an error. False: the link is down.
  bool read(uint64_t now_ms, Channel& channel);
  // The next frame of an open or greeting channel; false when there is none, or the link broke.
  bool next_frame(uint64_t now_ms, Channel& channel, wire::Frame& frame);
  bool flush(uint64_t now_ms, Channel& channel);

  // Closes everything, the listener too. `ours`: false in a forked child, whose parent continues
  // listening on the same path.
  void shut(bool ours);
  size_t fill_poll(pollfd* out, uint64_t now_ms, bool data_wants_out);
  uint16_t listen_port() const { return listen_port_; }

 private:
  void step_connect(uint64_t now_ms);
  void begin_connect(uint64_t now_ms, Channel& channel);
  void watch_connect(uint64_t now_ms, Channel& channel);
  void connect_failed(uint64_t now_ms, int error);
  void go_on(uint64_t now_ms, bool is_round_over);
  void try_another(uint64_t now_ms);
  bool is_served_by_ours(uint64_t now_ms, const Channel& channel);
  void step_listen(uint64_t now_ms);
  bool open_listener(uint64_t now_ms);
  void accept_waiting(uint64_t now_ms);

  void data_begins();
  void greet(uint64_t now_ms, Channel& channel);
  void send_handshake(uint64_t now_ms, Channel& channel, const HandshakeStep& step);
  void take_reason(const collect_wire_Refuse& refuse);
  void step_greeting(uint64_t now_ms, Channel& channel);
  void take_greeting_frame(uint64_t now_ms, Channel& channel, const wire::Frame& frame);
  void close_pair();
  void schedule(uint64_t now_ms);
  void say_waiting();
  uint64_t random();
  bool is_data(const Channel& channel) const { return &channel == &data_; }

  // Constant after prepare().
  Role role_ = Role::kNone;
  const Settings* settings_ = nullptr;
  StreamTable* streams_ = nullptr;  // the shipper's; gets what the collector holds
  CollectorList collectors_;        // to connect to
  AddressList listen_on_;           // the first that is free

  ProcessIdentity identity_;
  Channel control_;
  Channel data_;
  Handshake handshake_;
  Socket listener_;
  uint16_t listen_port_ = 0;
  uint32_t listening_on_ = 0;            // which address
  uint64_t accept_at_ms_ = 0;            // not before
  uint64_t log_refused_user_at_ms_ = 0;  // not before
  PendingConnections pending_;

  uint32_t rounds_failed_ = 0;  // times that every address failed, since the last link
  uint32_t attempt_ = 0;
  uint64_t retry_at_ms_ = 0;
  uint64_t down_since_ms_ = 0;
  uint64_t returns_until_ms_ = 0;
  uint64_t up_since_ms_ = 0;
  uint64_t received_ms_ = 0;
  uint64_t random_ = 1;
  bool came_up_ = false;
  bool given_up_ = false;
  bool end_expected_ = false;
  bool unlink_path_ = false;
  char reason_[256];  // of the last break or refusal, printable
};

}  // namespace collect::agent
