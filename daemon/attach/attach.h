// Devices, on a thread of their own: looking for them must not hold up the threads that carry what
// is recorded, nor the other way round.
//
// Owned by the collector. Every function may be called from any thread but run() and stop(), which
// belong to the owner. The observer is called on the thread; after stop() nothing is answered.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/attach/device_table.h"

namespace collect::attach {

struct AttachOptions {
  std::string adb = "off";     // as the configuration has it
  std::string usbmux = "off";  // the same
  milliseconds keep_absent{};  // how long an unplugged device's agents may resume
  // Attached whenever their devices are there, also when no search finds them: "adb:SERIAL:NAME".
  std::vector<std::string> endpoints;
};

class Attach {
 public:
  // kInvalidArgument: an address that is none, or an endpoint that nothing would look for.
  static Result<std::unique_ptr<Attach>> create(const AttachOptions& options,
                                                const EnvironmentVariable& environment,
                                                DeviceObserver& observer);
  ~Attach();

  Status run();
  void stop();

  // As the functions of DeviceTable.
  void open(const std::string& address, DeviceSource::OnOpen done);
  void report(const std::string& address, EndpointReport report);
  void agent_is(const std::string& address, const std::string& agent, bool is_up, bool is_gone);
  void release(const std::string& address);
  void attach(const std::string& address, std::function<void(Status)> done);
  void search();
  void status_of(const std::string& address, std::function<void(Result<std::string>)> done);
  std::vector<DeviceView> devices() const { return table_->devices(); }
  std::vector<ServerState> servers() const { return table_->servers(); }

 private:
  Attach() = default;

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<DeviceTable> table_;  // on the thread, but for what others may call
  std::jthread thread_;
};

// Whether an agent's address names an endpoint on a device, as adb:SERIAL:NAME does.
bool is_device_address(const std::string& address);
// What is wrong with such an address; empty: nothing.
std::string device_address_fault(const std::string& address);
// The serial in such an address; empty: it is none.
std::string serial_of(const std::string& address);

}  // namespace collect::attach
