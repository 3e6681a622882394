// Whether an app runs, and what its agent says: two commands that run on the phone as long as we
// follow the app. When the cable takes them away they are started again.
//
// Works while its device's AdbClient works.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/phones/watched_app.h"

namespace collect::ctl {

inline constexpr std::chrono::milliseconds kWatchRetry{1'000};
// How long an app that was started has to show up as a process.
inline constexpr int kLooksForProcess = 50;  // a tenth of a second apart

class AppWatch final : public WatchedApp {
 public:
  using OnLine = std::function<void(const std::string&)>;  // of the agent, from logcat

  AppWatch(const AdbDevice& device, std::string package, OnLine on_line);
  AppWatch(const AppWatch&) = delete;
  AppWatch& operator=(const AppWatch&) = delete;

  // Starts what does not run, and works.
  void work_for(std::chrono::milliseconds time) override;
  std::string agent_address() const override;
  const std::string& serial() const override { return device_.serial(); }
  bool has_ended() const override { return has_ended_; }
  bool is_away() const override { return is_away_; }
  bool was_seen() const { return pid_ != 0; }

 private:
  void start_what_ended();
  void watch_process();
  void follow_log();
  void take_log(const std::string& text);

  const AdbDevice& device_;
  const std::string package_;
  const OnLine on_line_;
  std::shared_ptr<ShellStream> process_;
  std::shared_ptr<ShellStream> log_;
  std::string line_;  // of the log, so far
  pid_t pid_ = 0;     // 0: not known yet
  bool has_ended_ = false;
  bool is_away_ = false;
  std::chrono::steady_clock::time_point next_try_{};
};

}  // namespace collect::ctl
