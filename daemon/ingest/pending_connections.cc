#include "daemon/ingest/pending_connections.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

std::shared_ptr<void> PendingConnections::admit(const std::string& origin, OnEvict on_evict,
                                                const principal::Principal& owner) {
  const auto share = per_origin_.find(origin);
  if (share != per_origin_.end() && share->second >= kMaxPendingPerAddress) {
    const auto oldest = std::find_if(slots_.begin(), slots_.end(),
                                     [&](const Slot& slot) { return slot.origin == origin; });
    evict(oldest, fmt::format("more than {} connections of this address have not sent a hello",
                              kMaxPendingPerAddress));
  }
  if (slots_.size() >= kMaxPendingConnections) {
    evict_oldest(
        fmt::format("more than {} connections have not sent a hello", kMaxPendingConnections));
  }
  slots_.push_back({origin, owner, std::move(on_evict)});
  if (!origin.empty()) ++per_origin_[origin];
  // Weak: at the very end a connection may outlive the acceptor. Its own mark says whether the
  // slot is still there, since evict() may have been first.
  const auto slot = std::prev(slots_.end());
  auto is_there = std::make_shared<bool>(true);
  slot->on_evict = [is_there, end = std::move(slot->on_evict)](const std::string& reason) {
    *is_there = false;
    end(reason);
  };
  return {nullptr, [self = weak_from_this(), slot, is_there](void*) {
            const auto pending = self.lock();
            if (!pending || !*is_there) return;
            pending->forget(slot->origin);
            pending->slots_.erase(slot);
          }};
}

void PendingConnections::evict_oldest(const std::string& reason) {
  if (!slots_.empty()) evict(slots_.begin(), reason);
}

bool PendingConnections::evict_oldest_of(const principal::Principal& owner,
                                         const std::string& reason) {
  const auto oldest = std::find_if(slots_.begin(), slots_.end(),
                                   [&](const Slot& slot) { return slot.owner == owner; });
  if (oldest == slots_.end()) return false;
  evict(oldest, reason);
  return true;
}

void PendingConnections::evict(Slots::iterator slot, const std::string& reason) {
  const Slot gone = std::move(*slot);
  slots_.erase(slot);
  forget(gone.origin);
  gone.on_evict(reason);
}

void PendingConnections::forget(const std::string& origin) {
  const auto known = per_origin_.find(origin);
  if (known != per_origin_.end() && --known->second == 0) per_origin_.erase(known);
}

std::shared_ptr<void> OriginCounts::enter(const std::string& origin, uint32_t limit) {
  {
    const std::lock_guard lock(mutex_);
    uint32_t& count = counts_[origin];
    if (count >= limit) return nullptr;
    ++count;
  }
  // Not null, which would say that there is no slot.
  return {this, [self = shared_from_this(), origin](void*) { self->leave(origin); }};
}

void OriginCounts::leave(const std::string& origin) {
  const std::lock_guard lock(mutex_);
  const auto known = counts_.find(origin);
  if (known != counts_.end() && --known->second == 0) counts_.erase(known);
}

}  // namespace collect::ingest
