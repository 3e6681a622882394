// Connections that have not said who they are, and how many connections each address has: what
// keeps one peer, or many silent ones, from taking all slots.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/principal/principal.h"

namespace collect::ingest {

// The slots of connections before their hello. When there is none left, the one that has been
// silent longest is evicted, and not the newcomer: an agent sends its hello at once, so an attacker
// who wants to keep it out would have to open a whole round of connections in that time, again and
// again, instead of once in every deadline.
//
// On the acceptor's io thread only.
class PendingConnections : public std::enable_shared_from_this<PendingConnections> {
 public:
  // Ends the connection; called at most once, from admit() or evict_oldest().
  using OnEvict = std::function<void(const std::string& reason)>;

  // A slot, until the lease is let go of. `origin` as origin_of() gives it; empty: its own share
  // has no limit.
  std::shared_ptr<void> admit(const std::string& origin, OnEvict on_evict,
                              const principal::Principal& owner = {});
  // If there is any.
  void evict_oldest(const std::string& reason);
  // False: the principal has none.
  bool evict_oldest_of(const principal::Principal& owner, const std::string& reason);
  size_t count() const { return slots_.size(); }

 private:
  struct Slot {
    std::string origin;
    principal::Principal owner;
    OnEvict on_evict;
  };
  using Slots = std::list<Slot>;  // the oldest first

  void evict(Slots::iterator slot, const std::string& reason);
  void forget(const std::string& origin);

  Slots slots_;
  std::map<std::string, uint32_t> per_origin_;
};

// Connections of each address, decided or not. Thread-safe: they end on many threads.
class OriginCounts : public std::enable_shared_from_this<OriginCounts> {
 public:
  // Null when the address has `limit` already. It counts until the lease is let go of.
  std::shared_ptr<void> enter(const std::string& origin, uint32_t limit);

 private:
  void leave(const std::string& origin);

  std::mutex mutex_;
  std::map<std::string, uint32_t> counts_;
};

}  // namespace collect::ingest
