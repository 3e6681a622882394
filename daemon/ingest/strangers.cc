#include "daemon/ingest/strangers.h"

#include <algorithm>

#include "daemon/ingest/limits.h"

namespace collect::ingest {

std::shared_ptr<void> Strangers::admit(const std::string& origin, GiveWay give_way,
                                       const principal::Principal& owner) {
  const auto share = per_origin_.find(origin);
  if (share != per_origin_.end() && share->second >= kMaxStrangersPerAddress) {
    const auto oldest = std::find_if(places_.begin(), places_.end(),
                                     [&](const Place& place) { return place.origin == origin; });
    turn_out(oldest, "more than " + std::to_string(kMaxStrangersPerAddress) +
                         " connections of this address have not said hello");
  }
  if (places_.size() >= kMaxStrangers) {
    make_room("more than " + std::to_string(kMaxStrangers) + " connections have not said hello");
  }
  places_.push_back({origin, owner, std::move(give_way)});
  if (!origin.empty()) ++per_origin_[origin];
  // Weak: at the very end a connection may outlive the acceptor. Its own mark says whether the
  // place is still there, since turn_out() may have been first.
  const auto place = std::prev(places_.end());
  auto is_there = std::make_shared<bool>(true);
  place->give_way = [is_there, end = std::move(place->give_way)](const std::string& reason) {
    *is_there = false;
    end(reason);
  };
  return {nullptr, [self = weak_from_this(), place, is_there](void*) {
            const auto strangers = self.lock();
            if (!strangers || !*is_there) return;
            strangers->forget(place->origin);
            strangers->places_.erase(place);
          }};
}

void Strangers::make_room(const std::string& reason) {
  if (!places_.empty()) turn_out(places_.begin(), reason);
}

bool Strangers::make_room_of(const principal::Principal& owner, const std::string& reason) {
  const auto oldest = std::find_if(places_.begin(), places_.end(),
                                   [&](const Place& place) { return place.owner == owner; });
  if (oldest == places_.end()) return false;
  turn_out(oldest, reason);
  return true;
}

void Strangers::turn_out(Places::iterator place, const std::string& reason) {
  const Place gone = std::move(*place);
  places_.erase(place);
  forget(gone.origin);
  gone.give_way(reason);
}

void Strangers::forget(const std::string& origin) {
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
  // Not null, which would say that there is no place.
  return {this, [self = shared_from_this(), origin](void*) { self->leave(origin); }};
}

void OriginCounts::leave(const std::string& origin) {
  const std::lock_guard lock(mutex_);
  const auto known = counts_.find(origin);
  if (known != counts_.end() && --known->second == 0) counts_.erase(known);
}

}  // namespace collect::ingest
