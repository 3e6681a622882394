// Android devices through the adb server: a tracker for the list of devices, a shell for the list
// of agents that listen, a stream to each. The server is never started, stopped or configured.
// ATTACH.md "adb".
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/attach/adb/adb_connection.h"
#include "daemon/attach/adb/adb_routes.h"
#include "daemon/attach/device_source.h"

namespace collect::attach {

inline constexpr std::chrono::milliseconds kFirstServerRetry{250};
// One connect() that finds no one: some ten microseconds.
inline constexpr std::chrono::milliseconds kMaxServerRetry{500};
// While a device can't be used: trackers get no report that it became "unauthorized" (29.0.6).
inline constexpr std::chrono::milliseconds kBlockedLookPause{2'000};
inline constexpr size_t kMaxSocketListBytes = 1u << 20;  // of /proc/net/unix
// Searches and streams that wait for the server; with one that never answers they pile up.
inline constexpr size_t kMaxAdbConnections = 512;

class AdbSource final : public DeviceSource {
 public:
  AdbSource(asio::io_context& io, AdbAddress address);
  ~AdbSource() override;

  const char* via() const override { return "adb"; }
  void start(OnServer on_server, OnDevices on_devices) override;
  void stop() override;
  void find_agents(const std::string& serial, OnAgents done) override;
  void open(const std::string& serial, const std::string& endpoint, OnOpen done) override;

 private:
  using ConnectionRef = std::shared_ptr<AdbConnection>;
  using OnTransport = std::function<void(Result<ConnectionRef>)>;
  using OnFeatures = std::function<void(Result<bool> has_shell_v2)>;

  // Wraps an answer so that it comes to nothing after stop().
  template <class Call>
  auto unless_stopped(Call call) {
    return [weak = std::weak_ptr<int>(running_), call = std::move(call)](auto&&... values) mutable {
      if (!weak.expired()) call(std::forward<decltype(values)>(values)...);
    };
  }

  ConnectionRef make_connection();
  // make_connection(), unless too many wait already.
  Result<ConnectionRef> make_device_connection();
  void track();
  void read_list(const ConnectionRef& tracker);
  void on_list(const std::string& text);
  void show_phones();
  // Which phone the entry is, of those that are there by cable too.
  void ask_number(const std::string& serial);
  void on_tracker_end(const Error& why);
  void report_server(bool connected, const std::string& status);
  // One look at the list, when a device that the tracker calls usable does not answer, and now and
  // then while one can't be used: the server does not always report it.
  void look_again();
  template <class Done, class Next>
  void connect(Done done, Next next);
  void connect_device(const std::string& serial, OnTransport done);
  void ask_features(const std::string& serial, OnFeatures done);
  void list_sockets(const std::string& serial, bool shell_v2, OnAgents done);

  asio::io_context& io_;
  const AdbAddress address_;
  std::shared_ptr<int> running_;  // null while stopped: pending answers come to nothing
  OnServer on_server_;
  OnDevices on_devices_;
  ServerState server_;
  bool server_reported_ = false;
  asio::steady_timer retry_;
  std::chrono::milliseconds pause_ = kFirstServerRetry;
  std::set<std::weak_ptr<AdbConnection>, std::owner_less<>> connections_;
  AdbRoutes routes_;
  std::vector<SourceDevice> devices_;  // as last reported
  bool list_reported_ = false;
  size_t most_left_out_ = 0;  // so that the log has no line for each list
  bool looking_again_ = false;
  asio::steady_timer next_look_;
  std::map<std::string, bool> shell_v2_;  // by serial, as long as the device is usable
};

}  // namespace collect::attach
