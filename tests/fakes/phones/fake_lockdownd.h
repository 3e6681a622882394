// A phone's lockdownd with the values that a test gives it, on a port of loopback. It writes and
// reads property lists as text: nothing of it is shared with what it tests.
//
// One thread of its own; every function may be called from any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace collect::fakes {

class FakeLockdownd {
 public:
  FakeLockdownd();
  ~FakeLockdownd();
  FakeLockdownd(const FakeLockdownd&) = delete;
  FakeLockdownd& operator=(const FakeLockdownd&) = delete;

  uint16_t port() const { return port_; }
  void set_value(const std::string& key, const std::string& value);
  void set_type(const std::string& type);
  // Bytes that go out instead of the next answers, as they stand; empty: the truth.
  void answer_with(const std::string& bytes);
  // Called before each answer, from its thread.
  void on_question(std::function<void()> happens);
  // What was asked, "QueryType" or "GetValue DeviceName".
  std::vector<std::string> asked() const;

 private:
  void run();
  void serve(int client);
  std::string answer(const std::string& request);

  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::string type_ = "com.apple.mobile.lockdown";
  std::map<std::string, std::string> values_;
  std::string instead_;
  std::function<void()> happens_;
  std::vector<std::string> asked_;
  std::thread thread_;
};

}  // namespace collect::fakes
