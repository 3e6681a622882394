// Conversations with the adb server for a program that has one thread and waits for each answer.
// Other operations (ShellStream) continue during a wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/adb/adb_connection.h"
#include "daemon/ctl/record/phones/waiting_io.h"
#include "formats/core/result.h"

namespace collect::ctl {

class AdbClient {
 public:
  explicit AdbClient(attach::AdbAddress address) : address_(std::move(address)) {}

  // The number that adb programs compare: 41 of 1.0.41.
  Result<uint32_t> version();
  // Those that are left out are beyond attach::kMaxAdbDevices, or no devices.
  Result<std::vector<attach::SourceDevice>> devices();
  Result<std::string> features(const std::string& serial);
  // A stream to a service of the device, such as "shell,v2,raw:ls" or "sync:". kNotFound: the
  // device refuses; kUnavailable: it, or the server, is not there.
  Result<attach::Socket> open(const std::string& serial, const std::string& service);

  WaitingIo& io() { return io_; }
  std::string address() const { return address_.text(); }

 private:
  using ConnectionRef = std::shared_ptr<attach::AdbConnection>;
  template <class T>
  Result<T> answer_of(const ConnectionRef& connection,
                      const std::function<void(std::function<void(Result<T>)>)>& ask);
  Result<ConnectionRef> connect();
  Result<std::string> ask_host(const std::string& request);

  WaitingIo io_;
  const attach::AdbAddress address_;
};

}  // namespace collect::ctl
