// One program through which devices are reached: the adb server or usbmuxd. A source watches which
// devices there are, finds the endpoints on a device where agents listen, and opens byte streams to
// them. What it says about devices is a hint; the end of a stream is the truth.
//
// Lives on one io_context's thread: everything is called and answered there, and destroyed after
// stop(). No callback runs inside the call that it was given to, and none after stop().
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <functional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::attach {

using Socket = asio::generic::stream_protocol::socket;

struct SourceDevice {  // as the server reports it
  std::string serial;
  std::string connection;      // "usb", "network", "emulator" or empty
  std::string model;           // empty: not known
  std::string reported_state;  // the server's own word: "device", "unauthorized", "offline" …
  bool is_usable = false;
  std::string reason, advice;  // sentences, when it is not usable
  // Where the server knows it by several serials: these, the one that is used first.
  std::vector<std::string> routes;

  bool operator==(const SourceDevice&) const = default;
};

// Which of two entries of the same device is better: the one that can be used, then the one by
// cable.
inline bool is_better(const SourceDevice& a, const SourceDevice& b) {
  if (a.is_usable != b.is_usable) return a.is_usable;
  return a.connection == "usb" && b.connection != "usb";
}

struct ServerState {
  std::string via;      // "adb", "usbmux"
  std::string address;  // "127.0.0.1:5037", "unix:/var/run/usbmuxd"
  bool connected = false;
  std::string status;  // a sentence: why there is no connection, and what to do

  bool operator==(const ServerState&) const = default;
};

class DeviceSource {
 public:
  using OnServer = std::function<void(const ServerState&)>;
  using OnDevices = std::function<void(const std::vector<SourceDevice>&)>;
  using OnAgents = std::function<void(Result<std::vector<std::string>>)>;
  using OnOpen = std::function<void(Result<Socket>)>;

  virtual ~DeviceSource() = default;
  virtual const char* via() const = 0;

  // Watches, and connects to the server again for ever with bounded pauses, until stop(). on_server
  // gets every change, on_devices the whole list at every change: an empty one when the server is
  // lost.
  virtual void start(OnServer on_server, OnDevices on_devices) = 0;
  virtual void stop() = 0;

  // The endpoints on a usable device where agents listen, or may listen: names for open().
  // "collect_agent_4711" on Android, "tcp:7720" on iOS.
  virtual void find_agents(const std::string& serial, OnAgents done) = 0;

  // A connected stream to that endpoint, ready for the agent protocol. kNotFound: no one listens
  // there, or the device is not there; kUnavailable: the server or the device failed, try again.
  virtual void open(const std::string& serial, const std::string& endpoint, OnOpen done) = 0;
};

}  // namespace collect::attach
