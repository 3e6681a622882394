// Conversations with the adb server for a program that has one thread and waits for each answer.
// What goes on meanwhile (ShellStream) moves on while something is waited for.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/adb_connection.h"
#include "formats/core/result.h"

namespace collect::ctl {

// How soon an interruption ends a wait.
inline constexpr std::chrono::milliseconds kInterruptionLook{50};

class AdbClient {
 public:
  using Predicate = std::function<bool()>;

  explicit AdbClient(attach::AdbAddress address);

  // While it returns true, waits end with kCancelled; null: nothing interrupts.
  void set_interrupted(Predicate interrupted) { interrupted_ = std::move(interrupted); }

  // The number that adb programs compare: 41 of 1.0.41.
  Result<uint32_t> version();
  // Those that are left out are beyond attach::kMaxAdbDevices, or no devices.
  Result<std::vector<attach::SourceDevice>> devices();
  Result<std::string> features(const std::string& serial);
  // A stream to a service of the device, such as "shell,v2,raw:ls" or "sync:". kNotFound: the
  // device refuses; kUnavailable: it, or the server, is not there.
  Result<attach::Socket> open(const std::string& serial, const std::string& service);

  // Works until `is_done`; kUnavailable with `what` at the bound.
  Status wait(const Predicate& is_done, std::chrono::milliseconds bound, const std::string& what);
  void work_for(std::chrono::milliseconds time) { io_.run_for(time); }

  std::string address() const { return address_.text(); }

 private:
  using ConnectionRef = std::shared_ptr<attach::AdbConnection>;
  template <class T>
  Result<T> answer_of(const ConnectionRef& connection,
                      const std::function<void(std::function<void(Result<T>)>)>& ask);
  Result<ConnectionRef> connect();
  Result<std::string> ask_host(const std::string& request);

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;  // io_ always has something
  const attach::AdbAddress address_;
  Predicate interrupted_;
};

}  // namespace collect::ctl
