// A process of this machine that is recorded from the middle of its life.
#pragma once

#include <sys/types.h>

#include <string>

#include "daemon/ctl/record/phones/watched_app.h"

namespace collect::ctl {

class LocalProcess final : public WatchedApp {
 public:
  explicit LocalProcess(pid_t pid);
  ~LocalProcess() override;

  void work_for(std::chrono::milliseconds time) override;
  // Its agent connects to the collector by itself.
  std::string agent_address() const override { return {}; }
  const std::string& serial() const override { return name_; }
  bool has_ended() const override { return ended_; }
  bool is_away() const override { return false; }

 private:
  std::string name_;
  int handle_;  // pidfd: the number may be another process's soon
  bool ended_ = false;
};

}  // namespace collect::ctl
