// Which devices there are, why one can't be used, and which agents on them are attached: what the
// sources report, merged, and the search for agents. It opens nothing on its own account: endpoints
// where an agent listens are named to the observer, who dials them through open() and reports back.
//
// Everything runs on the thread of the io_context but devices() and servers(), which any thread may
// call. ATTACH.md has the states.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/attach/device_source.h"

namespace collect::attach {

using std::chrono::milliseconds;

// The search for agents asks the device for a shell, which shows in what is recorded there: some
// milliseconds of one of its processors. At once when a device comes, then often for a while, for
// someone is likely to start an app; so too when an agent on it ended, and when someone asks.
inline constexpr milliseconds kFreshSearchPause{500};
inline constexpr milliseconds kFreshTime{10'000};
inline constexpr milliseconds kSearchPause{1'500};
inline constexpr size_t kMaxEndpoints = 256;  // of one device: those that were asked for, too
inline constexpr milliseconds kLeastSearchPause{250};  // from one to the next, for any caller

// How long a device can't be used before the log says so.
inline constexpr milliseconds kBlockedLogPause{2'000};

inline constexpr char kUnplugged[] = "the device was unplugged, or its server ended";

enum class DeviceState : uint8_t { kServing, kNoAgent, kBlocked, kAbsent };

struct EndpointView {
  std::string name;    // "collect_agent_4711"
  std::string agent;   // as the observer calls it; empty before its hello
  std::string status;  // a sentence: why it can't be used; empty: it is attached
  bool operator==(const EndpointView&) const = default;
};

struct DeviceView {
  std::string via;
  SourceDevice device;  // reason and advice are those of the state
  DeviceState state = DeviceState::kNoAgent;
  std::vector<EndpointView> endpoints;
  bool operator==(const DeviceView&) const = default;
};

// Called on the table's thread.
class DeviceObserver {
 public:
  virtual ~DeviceObserver() = default;
  virtual void device_changed(const DeviceView& device, bool is_new) = 0;
  virtual void device_removed(const DeviceView& device) = 0;
  // An agent listens there: dial it until it is gone. "adb:R58M:collect_agent_4711"
  virtual void endpoint_found(const std::string& address) = 0;
  virtual void endpoint_gone(const std::string& address) = 0;
};

// What came of dialling an endpoint.
struct EndpointReport {
  enum class Trouble : uint8_t { kNone, kVersion, kToken, kRefused };
  Trouble trouble = Trouble::kNone;
  std::string status;  // empty: it is up
};

class DeviceTable {
 public:
  // Agents of a device that was unplugged are shown for `keep_absent`: as long as they may resume.
  // The endpoints with the addresses of `wanted` are dialled whenever their devices can be used.
  DeviceTable(asio::io_context& io, std::vector<std::unique_ptr<DeviceSource>> sources,
              milliseconds keep_absent, DeviceObserver& observer,
              std::vector<std::string> wanted = {});
  ~DeviceTable();

  void start();
  void stop();

  // As DeviceSource::open, by the address that endpoint_found() named.
  void open(const std::string& address, DeviceSource::OnOpen done);
  void report(const std::string& address, EndpointReport report);
  // An agent that was dialled there is `agent`, and its links are up or not; is_gone: for good.
  void agent_is(const std::string& address, const std::string& agent, bool is_up, bool is_gone);
  // Someone detached it: it is left alone until no one listens there any more.
  void release(const std::string& address);
  // Someone wants it dialled, found or not, and released or not. kNotFound: no such device;
  // kUnsupported: it can't be used.
  Status attach(const std::string& address);
  // Someone wants to know what there is now.
  void search();
  // What came of dialling it, for people; empty: it is up. kNotFound: no one listens there.
  Result<std::string> status_of(const std::string& address);

  std::vector<DeviceView> devices() const;   // any thread
  std::vector<ServerState> servers() const;  // any thread

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Endpoint {
    std::string agent;
    std::string status;
    EndpointReport::Trouble trouble = EndpointReport::Trouble::kNone;
    bool is_up = false;
    bool is_attached = false;  // the observer dials it
    bool is_released = false;
  };
  struct Device {
    Device(asio::io_context& io, DeviceSource& from) : source(from), timer(io), log_timer(io) {}
    DeviceSource& source;
    SourceDevice shown;
    bool is_present = false;
    std::map<std::string, Endpoint> endpoints;
    std::string search_fault;
    asio::steady_timer timer;  // the next search, or the end of an absent device
    asio::steady_timer log_timer;
    bool is_searching = false;
    TimePoint searched_at{};
    TimePoint fresh_until{};
    uint64_t search = 0;  // answers to another one are stale
    std::optional<DeviceView> reported;
  };
  using Key = std::pair<std::string, std::string>;  // via, serial
  struct Found {
    Device* device = nullptr;
    std::string name;
  };

  void on_devices(DeviceSource& source, const std::vector<SourceDevice>& list);
  void update(Device& device, const SourceDevice& now);
  void leave(Device& device);
  void withdraw(Device& device, const std::string& why);
  void dial(Device& device, const std::string& name, Endpoint& endpoint);
  void search_soon(Device& device);
  void search_after(Device& device, milliseconds pause);
  void search_now(Device& device);
  void on_agents(Device& device, Result<std::vector<std::string>> found);
  std::vector<std::string> wanted_on(const Device& device) const;
  bool is_wanted(const Device& device, const std::string& endpoint) const;
  void lose_endpoint(Device& device, const std::string& endpoint);
  void remove_if_unused(Device& device);
  void remove(Device& device);
  void notify(Device& device);
  void log_when_true(Device& device, const DeviceView& view);
  DeviceView view_of(const Device& device) const;
  Found find_device(const std::string& address);
  Found find(const std::string& address);

  asio::io_context& io_;
  const std::vector<std::unique_ptr<DeviceSource>> sources_;
  const milliseconds keep_absent_;
  DeviceObserver& observer_;
  const std::vector<std::string> wanted_;  // addresses
  std::map<Key, std::shared_ptr<Device>> devices_;

  mutable std::mutex mutex_;
  std::map<Key, DeviceView> views_;             // guarded by mutex_
  std::map<std::string, ServerState> servers_;  // guarded by mutex_; by via
};

}  // namespace collect::attach
