// A command that runs on a device, by "shell,v2": what it says as it comes, and how it ended.
//
// Lives on the thread of its socket's io_context; no event comes from within a call, and none after
// close(). Closing it ends the command's standard input and output.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "daemon/attach/adb/adb_protocol.h"
#include "formats/core/result.h"

namespace collect::ctl {

class ShellStream : public std::enable_shared_from_this<ShellStream> {
 public:
  using OnPacket = std::function<void(attach::ShellPacket)>;  // the exit code's too
  using OnEnd = std::function<void(Status)>;  // ok: after the exit code; else the stream broke

  static std::shared_ptr<ShellStream> start(attach::Socket socket, OnPacket on_packet,
                                            OnEnd on_end);

  // All of the command's standard input, once.
  void send_input(std::string_view bytes);
  void close();

 private:
  ShellStream(attach::Socket socket, OnPacket on_packet, OnEnd on_end);
  void read();
  void take_packets();
  void end(const Status& status);

  attach::Socket socket_;
  OnPacket on_packet_;
  OnEnd on_end_;
  attach::ShellPackets packets_;
  std::array<char, 16u << 10> piece_;
  std::string input_;
};

}  // namespace collect::ctl
