// An adb server with devices that a test makes up: it answers what a host's client asks, relays
// streams to sockets of this machine or to functions of the test, and misbehaves on request. It
// shares no code with daemon/attach.
//
// Every function may be called from the test's thread; each connection has a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/phones/fake_phone.h"

namespace collect::fakes {

struct FakePhone {
  std::string state = "device";
  std::string attributes = "usb:1-1 product:sim model:Sim_Phone device:sim";
  std::string features = "shell_v2,cmd";
  std::string number;  // ro.serialno; empty: it has no such property
  // Abstract sockets of this machine that count as the phone's; empty: none of them.
  std::set<std::string> sockets;
  // Of a FakePhoneFolder: its shell runs any command, its apps' agents are the phone's too.
  std::string folder;
};

class FakeAdbServer {
 public:
  // What listens at a name without a socket of this machine: gets a connected descriptor and closes
  // it. Runs on a thread of the server's.
  using Handler = std::function<void(int fd)>;

  FakeAdbServer() = default;
  ~FakeAdbServer();

  void start();  // again: at the same port
  void stop();   // every connection ends; the phones stay plugged in
  std::string address() const;
  uint16_t port() const { return port_; }

  void plug(const std::string& serial, FakePhone phone);  // with the next transport id
  void unplug(const std::string& serial);                 // every stream to it ends
  void set_state(const std::string& serial, const std::string& state, bool tell_trackers = true);
  void add_socket(const std::string& serial, const std::string& name);
  void remove_socket(const std::string& serial, const std::string& name);
  void serve(const std::string& serial, const std::string& name, Handler handler);
  // As the real server does when a phone in a network goes away: its streams end, it answers no
  // more, and no tracker is informed; the list says "offline".
  void fall_silent(const std::string& serial);
  // After this many more bytes from the phone, also within a message, it is unplugged.
  void unplug_after(const std::string& serial, uint64_t bytes);
  // What files that are pushed to the phone meet.
  void limit_pushes(const std::string& serial, PushLimits limits);
  // While it is true nothing is relayed in either direction, and nothing ends.
  void stall(bool stalled);

  void split_answers(size_t piece_bytes);  // 0: each answer in one piece
  void answer_version_with(const std::string& text);
  // The next service on a phone that begins so is answered FAIL with this text.
  void fail_next(const std::string& prefix, const std::string& text);

  uint64_t requests(const std::string& prefix);  // how many began so
  size_t trackers();
  size_t connections();  // that clients hold open

 private:
  struct Phone {
    FakePhone is;
    uint64_t transport_id = 0;
    std::map<std::string, Handler> handlers;
    std::set<int> streams;  // descriptors of clients
    uint64_t bytes_left = UINT64_MAX;
    PushLimits pushes;
    bool silent = false;
  };

  void accept_loop();
  void serve_connection(int fd);
  bool serve_host(int fd, const std::string& request, std::string& serial);
  void serve_phone(int fd, const std::string& serial, const std::string& service);
  void track(int fd);
  // Services of a phone with a folder; false: it is none of them.
  bool serve_folder(int fd, const std::string& serial, const std::string& service);
  void shell(int fd, const std::string& serial, bool v2);
  void relay(int client, int target, const std::string& serial);
  bool pass_on(int from, int to, const std::string& serial, bool from_phone);
  int open_target(const std::string& serial, const std::string& name);
  bool send_pieces(int fd, const std::string& bytes);
  bool okay(int fd, const std::string* text = nullptr);
  bool fail(int fd, const std::string& text);
  std::string list_text() const;                                 // with mutex_ held
  std::string why_not(const std::string& serial) const;          // with mutex_ held
  std::string socket_list(const std::string& serial, bool dos);  // as /proc/net/unix
  void end_streams(Phone& phone);                                // with mutex_ held

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::map<std::string, Phone> phones_;
  uint64_t next_transport_ = 1;
  uint64_t version_ = 0;  // of the list, that trackers are sent
  std::set<int> connections_;
  std::vector<std::thread> threads_;
  size_t trackers_ = 0;
  size_t piece_bytes_ = 0;
  bool stalled_ = false;
  std::string version_text_ = "0029";  // of 29.0.6: 1.0.41
  std::string fail_prefix_;
  std::string fail_text_;
  std::vector<std::string> requests_;
};

}  // namespace collect::fakes
