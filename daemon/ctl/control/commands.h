// The commands that talk to a running collector. Each returns the exit code: 0, or 1 after one line
// on the error stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/ctl/control/online.h"

namespace collect::ctl {

enum class DetailMode : uint8_t { kOff, kArmed, kOn };

struct DetailOptions {
  DetailMode mode = DetailMode::kOff;
  std::string target;                    // session or agent; empty: every agent
  std::vector<std::string> threads;      // storage/model/thread_pattern.h
  std::vector<std::string> functions;    // formats/core/text/function_pattern.h
  std::chrono::nanoseconds duration{0};  // 0: until stopped
  std::chrono::nanoseconds pre_roll{0};
};

struct TriggerOptions {
  std::string target;  // session or agent; empty: every one that records
  std::vector<std::string> functions{};
  std::string counter{};                            // in their place
  int64_t above = 0;                                // what it passes
  std::chrono::nanoseconds blocked_longer_than{0};  // in their place; 0: it is none
  std::vector<std::string> until{};
  bool throws = false;
  std::chrono::nanoseconds longer_than{0};  // 0: every call is meant
  std::chrono::nanoseconds duration{0};     // 0: until stopped
  std::chrono::nanoseconds pre_roll{0};
  uint32_t times = 0;  // 0: any number
};

struct StartOptions {
  std::string target;  // agent; empty: every idle one
  std::vector<std::string> only;
  std::vector<std::string> except;
  bool detail = false;
  std::chrono::nanoseconds duration{0};  // 0: it does not stop by itself
};

struct FilterOptions {
  std::string target;  // session or agent; empty: every agent
  std::vector<std::string> only;
  std::vector<std::string> except;
  bool clear = false;
};

struct WatchOptions {
  std::string session;  // empty: the newest
  bool agents = false;
  std::string filter;  // of agents
  std::chrono::nanoseconds interval{std::chrono::seconds(1)};
};

int list_agents(const Online& online, const std::string& filter);
int attach_agent(const Online& online, const std::string& address);
// `otherwise`: instead of failing, where the collector knows no such agent, or where there is none.
int detach_agent(const Online& online, const std::string& name,
                 const std::function<int()>& otherwise = nullptr);
int list_threads(const Online& online, const std::string& agent);
int list_sessions(const Online& online, const std::string& filter);
int start_session(const Online& online, const StartOptions& options);
int stop_session(const Online& online, const std::string& word);
// With json: the manifest file, byte for byte.
int show_manifest(const Online& online, const std::string& session);
int set_detail(const Online& online, const DetailOptions& options);
// Instead of the triggers that there are; without functions, none any more.
int set_trigger(const Online& online, const TriggerOptions& options);
int show_triggers(const Online& online, const std::string& target);
// The filters of the session that `session` names, as its manifest has them; empty: the newest.
int show_function_filter(const Online& online, const std::string& session);
int set_function_filter(const Online& online, const FilterOptions& options);
int annotate(const Online& online, const std::string& target, const std::string& text);
int show_rules(const Online& online);
int clear_rules(const Online& online);
// `file` holds them as show_rules prints them; "-": standard input.
int set_rules(const Online& online, const std::string& file);
int watch(const Online& online, const WatchOptions& options);
int show_stats(const Online& online);

}  // namespace collect::ctl
