// Starts the program under test, again for each thing that is done to its agent, and keeps what one
// whole session showed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/conformance/agents/played_collector.h"
#include "proto/conformance/check.h"

namespace collect::conformance {

// A program that runs. It is ended with this object.
class AgentProgram {
 public:
  virtual ~AgentProgram() = default;
  virtual bool has_ended() = 0;
};

// Starts it so that its agent connects to this address.
using StartAgent = std::function<Result<std::unique_ptr<AgentProgram>>(const std::string& address)>;

// A collector and the program that connects to it.
struct Played {
  std::unique_ptr<PlayedCollector> collector;
  std::unique_ptr<AgentProgram> program;

  PlayedCollector* operator->() const { return collector.get(); }
  PlayedCollector& operator*() const { return *collector; }
};

class AgentBench {
 public:
  AgentBench(const Settings& settings, StartAgent start);

  const Settings& settings() const { return settings_; }
  // A collector that is to be informed how it plays; run() starts the program then.
  std::unique_ptr<PlayedCollector> collector() const;
  // Not when the program of the whole session did not connect: that would be waited for each time.
  Result<Played> run(std::unique_ptr<PlayedCollector> collector) const;
  // Both channels are open.
  Result<Played> run_open(std::unique_ptr<PlayedCollector> collector) const;

  // The whole session of a program: run once, when the first check asks for it.
  const PlayedCollector& session();
  // Empty: the session reached its end.
  const std::string& why_incomplete() const { return incomplete_; }
  bool data_ended() const { return data_ended_; }

 private:
  Result<Played> start(std::unique_ptr<PlayedCollector> collector) const;
  void play_session();

  const Settings settings_;
  const StartAgent start_;
  Played session_;
  std::string incomplete_;
  bool data_ended_ = false;
};

}  // namespace collect::conformance
