// What the live page shows, as one JSON text: agents, sessions, devices. WEB.md "Live state" has
// its fields. Asks the collector for its present lists; rates come from two looks in a row.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/control/collector_api.h"

namespace collect::web {

class LiveView {
 public:
  using Clock = std::chrono::steady_clock;

  // `collector` outlives it.
  explicit LiveView(control::CollectorApi& collector) : collector_(collector) {}

  // Looks again. Equal texts: nothing changed.
  std::string look(Clock::time_point now);

 private:
  struct Seen {
    uint64_t events = 0;
    uint64_t bytes = 0;
    Clock::time_point at;
    uint64_t events_per_second = 0;
    uint64_t bytes_per_second = 0;
  };

  nlohmann::json show(const control::api::Session& session, Clock::time_point now);
  Seen& measure(const control::api::Session& session, Clock::time_point now);

  control::CollectorApi& collector_;
  std::map<std::string, Seen> seen_;  // by session, those that are shown
};

// "session_…/pid_N" of "sessions/session_…/pid_N".
std::string_view bare_session_name(std::string_view name);
std::string full_session_name(std::string_view bare);

// Whether it is sealed.
bool is_over(const control::api::Session& session);

}  // namespace collect::web
