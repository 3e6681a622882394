// The server's half of an HTTP/2 connection whose client may not call: every call is answered with
// PERMISSION_DENIED and the reason, so that grpcurl shows the way out instead of a broken
// connection. gRPC never sees the connection.
//
// Bytes in, bytes out: no socket. One thread at a time.
#pragma once

#include <string>

#include "daemon/control/relay/http2_meter.h"

namespace collect::control {

class RefusalAnswer {
 public:
  explicit RefusalAnswer(const std::string& reason);

  // What to send first.
  static std::string greeting();
  // What to send after these bytes; false when the connection has to end.
  bool answer(Bytes bytes, std::string& out);

 private:
  void on_frame(const Http2Frame& frame, std::string& out);

  Http2Frames frames_{true};
  const std::string block_;  // the header block of every answer
  uint32_t calls_ = 0;
  uint32_t frames_seen_ = 0;
};

}  // namespace collect::control
