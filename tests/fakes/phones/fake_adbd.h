// The device side of adb, for a real adb server: one transport at a time, streams to abstract
// sockets of this machine, and a shell that knows one command. Destroying it pulls the cable.
//
// One thread serves everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace collect::fakes {

struct FakeAdbdOptions {
  std::string model = "Sim_Adbd";
  std::set<std::string> sockets;  // abstract sockets of this machine that count as the phone's
  bool trusts = true;             // else it asks for keys and accepts none
};

class FakeAdbd {
 public:
  // Listens on 127.0.0.1, at `port` if that is not 0: the server is asked to come here.
  explicit FakeAdbd(FakeAdbdOptions options, uint16_t port = 0);
  ~FakeAdbd();

  uint16_t port() const { return port_; }
  void add_socket(const std::string& name);

 private:
  struct Packet {
    uint32_t command = 0, arg0 = 0, arg1 = 0;
    std::string data;
  };
  struct Stream {
    uint32_t remote = 0;
    int fd = -1;             // -1: `output` is all there is to say
    std::string output;      // not sent yet
    bool in_flight = false;  // a WRTE that was not answered with OKAY
  };

  void serve();
  void serve_transport(int server);
  bool read_packet(int server, Packet& packet);
  bool send_packet(int server, uint32_t command, uint32_t arg0, uint32_t arg1,
                   const std::string& data = "");
  bool on_packet(int server, const Packet& packet);
  bool open(int server, const Packet& packet);
  bool pass_on(int server, uint32_t id);
  bool end(int server, uint32_t id);
  std::string socket_list();

  FakeAdbdOptions options_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;  // guards options_.sockets
  std::map<uint32_t, Stream> streams_;
  uint32_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace collect::fakes
