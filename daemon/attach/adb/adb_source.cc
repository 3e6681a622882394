#include "daemon/attach/adb/adb_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/attach/unix_sockets.h"
#include "formats/core/text/printable.h"

namespace collect::attach {
namespace {

constexpr char kListSockets[] = "cat /proc/net/unix";
constexpr char kAskNumber[] = "shell:getprop ro.serialno";

bool has_feature(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == wanted) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Result<std::vector<std::string>> agents_of(const std::string& serial, bool shell_v2,
                                           std::string bytes) {
  if (shell_v2) {
    Result<ShellOutput> shell = parse_shell_v2(bytes);
    if (!shell.ok()) {
      return Error{shell.code(),
                   fmt::format("{}: {}: {}", serial, kListSockets, shell.error().message)};
    }
    if (shell->exit_code != 0) {
      return Error{Code::kPermission,
                   fmt::format("{}: {}: {}", serial, kListSockets, shell->errors)};
    }
    bytes = std::move(shell->output);
  }
  ListeningAgents found = parse_listening_agents(bytes);
  if (found.left_out != 0) {
    spdlog::warn("adb: {}: more than {} agents listen: {} of them are left out", in_quotes(serial),
                 kMaxAgentsPerDevice, found.left_out);
  }
  return std::move(found.names);
}

}  // namespace

AdbSource::AdbSource(asio::io_context& io, AdbAddress address)
    : io_(io), address_(std::move(address)), retry_(io), next_look_(io) {
  server_.via = via();
  server_.address = address_.text();
}

AdbSource::~AdbSource() {
  stop();
}

AdbSource::ConnectionRef AdbSource::make_connection() {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  auto connection = std::make_shared<AdbConnection>(io_, address_);
  connections_.insert(connection);
  return connection;
}

Result<AdbSource::ConnectionRef> AdbSource::make_device_connection() {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  if (connections_.size() < kMaxAdbConnections) return make_connection();
  return Error{Code::kExhausted,
               fmt::format("the adb server at {} leaves {} connections without an answer",
                           address_.text(), kMaxAdbConnections)};
}

void AdbSource::start(OnServer on_server, OnDevices on_devices) {
  on_server_ = std::move(on_server);
  on_devices_ = std::move(on_devices);
  running_ = std::make_shared<int>(0);
  asio::post(io_, unless_stopped([this] { track(); }));
}

void AdbSource::stop() {
  running_.reset();  // the timers find no one
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->close();
  }
  connections_.clear();
}

// ---- the tracker

void AdbSource::track() {
  const ConnectionRef tracker = make_connection();
  tracker->connect(unless_stopped([this, tracker](const Status& connected) {
    if (!connected.ok()) {
      on_tracker_end(Error{
          Code::kUnavailable,
          fmt::format("no adb server at {}: start it with `adb start-server`", address_.text())});
      return;
    }
    tracker->ask("host:track-devices-l", unless_stopped([this, tracker](const Status& tracked) {
                   if (tracked.ok()) {
                     read_list(tracker);
                   } else {
                     on_tracker_end(tracked.error());
                   }
                 }));
  }));
}

void AdbSource::read_list(const ConnectionRef& tracker) {
  tracker->next_text(unless_stopped([this, tracker](const Result<std::string>& text) {
    if (!text.ok()) {
      on_tracker_end(text.error());
      return;
    }
    pause_ = kFirstServerRetry;
    report_server(true, "");
    on_list(*text);
    if (running_) read_list(tracker);
  }));
}

void AdbSource::on_list(const std::string& text) {
  AdbDeviceList list = parse_adb_devices(text);
  if (list.left_out > most_left_out_) {
    most_left_out_ = list.left_out;
    spdlog::warn("adb: {} lines of the device list are no devices, or beyond the first {}",
                 list.left_out, kMaxAdbDevices);
  }
  std::erase_if(shell_v2_, [&list](const auto& known) {
    return std::none_of(list.devices.begin(), list.devices.end(), [&known](const auto& device) {
      return device.serial == known.first && device.is_usable;
    });
  });
  const bool all_usable = std::all_of(list.devices.begin(), list.devices.end(),
                                      [](const auto& device) { return device.is_usable; });
  if (all_usable) {
    next_look_.cancel();
  } else {
    next_look_.expires_after(kBlockedLookPause);
    next_look_.async_wait(unless_stopped([this](const std::error_code& error) {
      if (!error) look_again();
    }));
  }
  routes_.take(std::move(list.devices));
  for (const std::string& serial : routes_.to_ask()) ask_number(serial);
  show_phones();
}

void AdbSource::show_phones() {
  if (list_reported_ && routes_.phones() == devices_) return;
  list_reported_ = true;
  devices_ = routes_.phones();
  on_devices_(devices_);
}

void AdbSource::ask_number(const std::string& serial) {
  const auto answered = [this, serial](const Result<std::string>& said) {
    routes_.answered(serial, said.ok() ? parse_number(*said) : "");
    show_phones();
  };
  connect_device(serial, [this, answered](const Result<ConnectionRef>& device) {
    if (!device.ok()) {
      answered(device.error());
      return;
    }
    const ConnectionRef connection = *device;
    connection->ask(kAskNumber, unless_stopped([this, connection, answered](const Status& begun) {
                      if (!begun.ok()) {
                        answered(begun.error());
                        return;
                      }
                      connection->read_to_end(
                          2 * kMaxSerialBytes,
                          unless_stopped([connection, answered](const Result<std::string>& said) {
                            connection->close();
                            answered(said);
                          }));
                    }));
  });
}

void AdbSource::on_tracker_end(const Error& why) {
  report_server(false, why.message);
  if (!running_) return;
  next_look_.cancel();
  shell_v2_.clear();
  routes_.take({});
  if (list_reported_) show_phones();
  retry_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, kMaxServerRetry);
  retry_.async_wait(unless_stopped([this](const std::error_code& error) {
    if (!error) track();
  }));
}

void AdbSource::report_server(bool connected, const std::string& status) {
  if (server_reported_ && server_.connected == connected && server_.status == status) return;
  server_reported_ = true;
  server_.connected = connected;
  server_.status = status;
  on_server_(server_);
}

void AdbSource::look_again() {
  if (looking_again_) return;
  looking_again_ = true;
  const ConnectionRef connection = make_connection();
  connection->connect(unless_stopped([this, connection](const Status& connected) {
    if (!connected.ok()) {
      looking_again_ = false;  // the tracker ends too, and says so
      return;
    }
    connection->ask_text("host:devices-l",
                         unless_stopped([this, connection](const Result<std::string>& text) {
                           looking_again_ = false;
                           connection->close();
                           if (text.ok() && server_.connected) on_list(*text);
                         }));
  }));
}

// ---- one device

// The connection talks to the device from then on.
void AdbSource::connect_device(const std::string& serial, OnTransport done) {
  connect(
      std::move(done), [this, serial](const ConnectionRef& connection, const OnTransport& on_end) {
        connection->ask("host:transport:" + serial,
                        unless_stopped([this, connection, serial, on_end](const Status& chosen) {
                          if (chosen.ok()) {
                            on_end(connection);
                            return;
                          }
                          look_again();
                          on_end(Error{Code::kUnavailable,
                                       fmt::format("{}: {}", serial, chosen.error().message)});
                        }));
      });
}

// `next` gets a connection to the adb server and `done`, which otherwise gets the error.
template <class Done, class Next>
void AdbSource::connect(Done done, Next next) {
  const Result<ConnectionRef> made = make_device_connection();
  if (!made.ok()) {
    asio::post(io_, unless_stopped([done = std::move(done), why = made.error()] { done(why); }));
    return;
  }
  const ConnectionRef& connection = *made;
  connection->connect(unless_stopped(
      [connection, done = std::move(done), next = std::move(next)](const Status& connected) {
        if (connected.ok()) {
          next(connection, done);
        } else {
          done(connected.error());
        }
      }));
}

void AdbSource::open(const std::string& phone, const std::string& endpoint, OnOpen done) {
  const std::string serial = routes_.route(phone);
  connect_device(serial, [this, serial, endpoint,
                          done = std::move(done)](const Result<ConnectionRef>& device) {
    if (!device.ok()) {
      done(device.error());
      return;
    }
    const ConnectionRef connection = *device;
    connection->ask(
        "localabstract:" + endpoint,
        unless_stopped([connection, serial, endpoint, done](const Status& opened) {
          if (opened.ok()) {
            done(connection->take_socket());
            return;
          }
          // adb says no more than "closed" when no one listens.
          const Error& error = opened.error();
          done(Error{error.code, error.code == Code::kNotFound
                                     ? fmt::format("{}: no one listens at {}", serial, endpoint)
                                     : fmt::format("{}: {}: {}", serial, endpoint, error.message)});
        }));
  });
}

void AdbSource::find_agents(const std::string& phone, OnAgents done) {
  const std::string serial = routes_.route(phone);
  ask_features(serial, [this, serial, done = std::move(done)](const Result<bool>& shell_v2) {
    if (shell_v2.ok()) {
      list_sockets(serial, *shell_v2, done);
    } else {
      done(shell_v2.error());
    }
  });
}

void AdbSource::ask_features(const std::string& serial, OnFeatures done) {
  const auto known = shell_v2_.find(serial);
  if (known != shell_v2_.end()) {
    asio::post(io_, unless_stopped([done = std::move(done), v2 = known->second] { done(v2); }));
    return;
  }
  connect(
      std::move(done), [this, serial](const ConnectionRef& connection, const OnFeatures& on_end) {
        connection->ask_text(
            fmt::format("host-serial:{}:features", serial),
            unless_stopped([this, connection, serial, on_end](const Result<std::string>& features) {
              connection->close();
              if (!features.ok() && features.code() != Code::kNotFound) {
                on_end(features.error());
                return;
              }
              // A server or a device that knows no features knows no shell,v2 either.
              const bool shell_v2 = features.ok() && has_feature(*features, "shell_v2");
              if (features.ok()) shell_v2_[serial] = shell_v2;
              on_end(shell_v2);
            }));
      });
}

void AdbSource::list_sockets(const std::string& serial, bool shell_v2, OnAgents done) {
  connect_device(serial, [this, serial, shell_v2,
                          done = std::move(done)](const Result<ConnectionRef>& device) {
    if (!device.ok()) {
      done(device.error());
      return;
    }
    const ConnectionRef connection = *device;
    const std::string command = (shell_v2 ? "shell,v2,raw:" : "shell:") + std::string(kListSockets);
    connection->ask(
        command, unless_stopped([this, connection, serial, shell_v2, done](const Status& begun) {
          if (!begun.ok()) {
            done(Error{Code::kUnavailable,
                       fmt::format("{}: no shell: {}", serial, begun.error().message)});
            return;
          }
          connection->read_to_end(
              kMaxSocketListBytes,
              unless_stopped([connection, serial, shell_v2, done](Result<std::string> bytes) {
                connection->close();
                if (!bytes.ok()) {
                  done(Error{bytes.code(), fmt::format("{}: {}: {}", serial, kListSockets,
                                                       bytes.error().message)});
                } else {
                  done(agents_of(serial, shell_v2, std::move(*bytes)));
                }
              }));
        }));
  });
}

}  // namespace collect::attach
