// A channel to a collector: requests and answers of the control plane, as bytes. gRPC is behind it,
// in control/grpc.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "daemon/ctl/control/connection/control_target.h"
#include "formats/core/result.h"

namespace collect::ctl {

// A manifest lists every thread, module, gap and stall.
inline constexpr int kMaxAnswerBytes = 1 << 30;

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  ControlChannel() = default;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  // `method` is "/package.Service/Method". Blocks until the answer is there.
  virtual Result<std::string> call(const std::string& method, const std::string& request,
                                   std::chrono::milliseconds deadline) = 0;
  // Hands over each message of a stream until it ends or the callback returns false, which is no
  // error. A stop ends it from another thread.
  virtual Status read_all(const std::string& method, const std::string& request,
                          const std::function<bool(const std::string&)>& on_message,
                          const std::stop_token& stop) = 0;
};

// Reads the files of `target`, and does not connect yet: the first call does. kExhausted: this
// machine has no memory or threads for it.
Result<std::unique_ptr<ControlChannel>> open_channel(const ControlTarget& target);

}  // namespace collect::ctl
