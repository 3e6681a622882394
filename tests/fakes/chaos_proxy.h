// A TCP relay on loopback that treats its connections as bad cables do: cuts them in mid-frame,
// with and without a reset, holds them still, swallows what is sent, lets bytes trickle; and as
// slow ones: so many bytes a second.
//
// One thread of its own; every function may be called from any other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collect::fakes {

class ChaosProxy {
 public:
  // Relays to 127.0.0.1:`target`. Where no one listens there, connections are closed at once.
  explicit ChaosProxy(uint16_t target);
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  uint16_t port() const { return port_; }

  // Ends connections now, also with bytes on their way: all of them, or the one that `which` picks.
  void cut_all(bool reset);
  void cut_one(uint64_t which, bool reset);
  // Nothing moves in either direction until it is called with false; new connections are accepted
  // by the kernel alone.
  void hold(bool held);
  // The connections that are there now neither move nor end: both sides have to find out.
  void abandon_all();
  // At most so many bytes in each direction of a connection every millisecond; 0: no such limit.
  void trickle(size_t bytes);

  // At most so many bytes a second in each direction, of all connections together; 0: no such
  // limit.
  void limit_rate(uint64_t bytes_per_second);
  // What came from those who connected.
  uint64_t carried_bytes() const { return carried_bytes_; }

  uint64_t cuts() const { return cuts_; }
  size_t connections() const;

 private:
  struct Relay;
  void run();
  void accept_one();
  size_t move(Relay& relay, int direction);
  void close_relay(Relay& relay, bool reset);
  bool steps() const { return trickle_ != 0 || rate_ != 0; }
  void fill_allowance();

  const uint16_t target_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> over_{false};
  std::atomic<bool> held_{false};
  std::atomic<size_t> trickle_{0};
  std::atomic<uint64_t> rate_{0};
  std::atomic<uint64_t> carried_bytes_{0};
  std::atomic<uint64_t> cuts_{0};
  mutable std::mutex mutex_;  // guards relays_
  std::vector<std::unique_ptr<Relay>> relays_;
  // The proxy's thread: bytes that may move now, per direction, and when that was last looked at.
  std::array<uint64_t, 2> allowance_{};
  std::chrono::steady_clock::time_point allowed_at_{};
  std::thread thread_;
};

}  // namespace collect::fakes
