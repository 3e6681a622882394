// An app on a phone, as the recording command sees it.
//
// Lives on the thread of the command.
#pragma once

#include <chrono>
#include <string>

namespace collect::ctl {

class WatchedApp {
 public:
  virtual ~WatchedApp() = default;

  // Works for that long; to be called again and again.
  virtual void work_for(std::chrono::milliseconds time) = 0;
  // Where the collector reaches its agent, as it shows agents; empty: not known yet.
  virtual std::string agent_address() const = 0;
  virtual const std::string& serial() const = 0;  // of the device
  virtual bool has_ended() const = 0;             // false where no one can know
  virtual bool is_away() const = 0;               // the device can't be asked now
};

}  // namespace collect::ctl
