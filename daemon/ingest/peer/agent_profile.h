// Who a process is: its last hello, the account that it is charged to, and what is shown of it, its
// state and what its agent says of itself.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>

#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/peer/counter_watch.h"
#include "daemon/ingest/session/core.h"
#include "daemon/principal/principal.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class AgentProfile {
 public:
  AgentProfile(IngestCore& core, AgentSnapshot agent);

  // A connection whose hello was checked. `dialled`: the address at which it was; empty: it came by
  // itself, from `peer`.
  void greet(const wire::Hello& hello, const principal::Principal& principal,
             const std::string& peer, const std::string& dialled);
  const wire::Hello& hello() const { return hello_; }
  // The account of the newest connection.
  const std::shared_ptr<principal::Account>& account() const { return account_; }
  uint64_t agreed_features() const;  // wire::Feature
  std::string name() const { return fmt::format("agents/{}", shown_.id); }
  std::string name_for_log() const;

  const AgentSnapshot& shown() const { return shown_; }
  // Both channels are welcomed.
  void count_connection();
  bool was_connected() const { return was_connected_; }
  void set_state(AgentState state, const std::string& status);
  void set_session(const std::string& name) { shown_.session = name; }
  void set_detail(DetailMode mode) { shown_.detail = mode; }
  void set_start_filter(StartFilter outcome) { shown_.start_filter = std::move(outcome); }
  // True: something in it is to be shown.
  bool take(const wire::Heartbeat& beat);
  // Shown at the next heartbeat. kDamaged: they are not what the protocol allows.
  Status take(const wire::Counters& counters);
  CounterWatch& counters() { return counters_; }
  void show();

 private:
  IngestCore& core_;
  wire::Hello hello_;
  std::shared_ptr<principal::Account> account_;
  AgentSnapshot shown_;
  CounterWatch counters_;
  bool counters_changed_ = false;  // since the agent was shown
  bool was_connected_ = false;
};

}  // namespace collect::ingest
