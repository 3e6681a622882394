#include "daemon/ingest/peer/counter_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "proto/wire/layout.h"

namespace collect::ingest {
namespace {

Error too_many(const char* where) {
  return {Code::kDamaged, fmt::format("more than {} counters {}", wire::kMaxCounters, where)};
}

}  // namespace

void CounterWatch::watch(const std::vector<WatchedEvent>& events, OnSeen on_seen) {
  on_seen_ = std::move(on_seen);
  watched_.clear();
  for (size_t number = 0; number < events.size(); ++number) {
    const WatchedEvent& event = events[number];
    if (event.kind != WatchedEvent::Kind::kCounter) continue;
    const auto known = values_.find(event.counter);
    const bool is_above = known != values_.end() && known->second > event.above;
    watched_.push_back({number, event.counter, event.above, is_above});
  }
}

Status CounterWatch::take(const wire::Counters& counters) {
  if (counters.counters_size() > static_cast<int>(wire::kMaxCounters)) {
    return too_many("in one frame");
  }
  for (const wire::Counter& counter : counters.counters()) {
    if (counter.name().empty() || counter.name().size() > wire::kMaxCounterName) {
      return Error{Code::kDamaged, fmt::format("a counter's name is empty or longer than {} bytes",
                                               wire::kMaxCounterName)};
    }
    if (values_.size() == wire::kMaxCounters && !values_.contains(counter.name())) {
      return too_many("of one process");
    }
    values_[counter.name()] = counter.value();
    const int64_t highest = std::max(counter.highest(), counter.value());
    for (Watched& watched : watched_) {
      if (watched.counter != counter.name()) continue;
      const bool was_above = std::exchange(watched.is_above, counter.value() > watched.above);
      if (was_above || highest <= watched.above) continue;
      SeenEvent seen;
      seen.number = watched.number;
      seen.at_ns = counters.at_ns();
      seen.value = highest;
      on_seen_(seen);
    }
  }
  return {};
}

}  // namespace collect::ingest
