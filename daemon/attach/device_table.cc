#include "daemon/attach/device_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/attach/list_pace.h"

namespace collect::attach {

using std::chrono::steady_clock;

namespace {

constexpr char kDetached[] = "detached by command";

std::string address_of(const DeviceSource& source, const std::string& serial,
                       const std::string& endpoint) {
  return fmt::format("{}:{}:{}", source.via(), serial, endpoint);
}

}  // namespace

DeviceTable::DeviceTable(asio::io_context& io, std::vector<std::unique_ptr<DeviceSource>> sources,
                         milliseconds keep_absent, DeviceObserver& observer,
                         std::vector<std::string> wanted)
    : io_(io),
      sources_(std::move(sources)),
      keep_absent_(keep_absent),
      observer_(observer),
      wanted_(std::move(wanted)) {
  // Before the first report, this shows at least which servers are watched.
  for (const auto& source : sources_) {
    servers_[source->via()] = {source->via(), "", false, "not connected yet"};
  }
}

DeviceTable::~DeviceTable() {
  stop();
}

void DeviceTable::start() {
  for (const auto& source : sources_) {
    // Lives as long as the source keeps the function below.
    const auto pace = std::make_shared<ListPace>(
        io_, [this, from = source.get()](const std::vector<SourceDevice>& list) {
          on_devices(*from, list);
        });
    source->start(
        [this](const ServerState& server) {
          const std::lock_guard lock(mutex_);
          ServerState& known = servers_[server.via];
          if (server.connected) {
            spdlog::info("{}: connected to {}", server.via, server.address);
          } else {
            // Most machines have no phones: a server that was never there is not reported.
            spdlog::log(known.connected ? spdlog::level::info : spdlog::level::debug, "{}: {}",
                        server.via, server.status);
          }
          known = server;
        },
        [pace](const std::vector<SourceDevice>& list) { pace->take(list); });
  }
}

void DeviceTable::stop() {
  for (const auto& source : sources_) source->stop();
  devices_.clear();  // their timers are cancelled, and find no one
}

// ---- reports of the sources

void DeviceTable::on_devices(DeviceSource& source, const std::vector<SourceDevice>& list) {
  std::map<std::string, const SourceDevice*> now;
  for (const SourceDevice& device : list) {
    const SourceDevice*& best = now[device.serial];
    if (best == nullptr || is_better(device, *best)) best = &device;
  }
  std::vector<std::shared_ptr<Device>> left;
  for (const auto& [key, device] : devices_) {
    if (&device->source == &source && !now.contains(key.second)) left.push_back(device);
  }
  for (const auto& device : left) {
    if (device->is_present) leave(*device);
  }
  for (const auto& [serial, device] : now) {
    auto& entry = devices_[{source.via(), serial}];
    if (!entry) entry = std::make_shared<Device>(io_, source);
    update(*entry, *device);
  }
}

void DeviceTable::update(Device& device, const SourceDevice& now) {
  const bool was_usable = device.is_present && device.shown.is_usable;
  device.shown = now;
  device.is_present = true;
  if (now.is_usable && !was_usable) {
    device.timer.cancel();
    device.search_fault.clear();
    device.fresh_until = steady_clock::now() + kFreshTime;
    search_now(device);
  } else if (!now.is_usable && was_usable) {
    withdraw(device, now.reason);
  }
  notify(device);
}

void DeviceTable::leave(Device& device) {
  device.is_present = false;
  withdraw(device, kUnplugged);
  device.timer.expires_after(keep_absent_);
  const std::weak_ptr<Device> weak = devices_.at({device.source.via(), device.shown.serial});
  device.timer.async_wait([this, weak](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->is_present) remove(*self);
  });
  notify(device);
  remove_if_unused(device);
}

// Nothing on the device is dialled any more; agents that may come back are kept.
void DeviceTable::withdraw(Device& device, const std::string& why) {
  ++device.search;
  device.is_searching = false;
  device.timer.cancel();
  for (auto endpoint = device.endpoints.begin(); endpoint != device.endpoints.end();) {
    if (endpoint->second.is_attached) {
      observer_.endpoint_gone(address_of(device.source, device.shown.serial, endpoint->first));
    }
    endpoint->second.is_attached = false;
    endpoint->second.is_up = false;
    endpoint->second.status = why;
    endpoint =
        endpoint->second.agent.empty() ? device.endpoints.erase(endpoint) : std::next(endpoint);
  }
}

void DeviceTable::remove_if_unused(Device& device) {
  if (!device.is_present && device.endpoints.empty()) remove(device);
}

void DeviceTable::remove(Device& device) {
  const Key key{device.source.via(), device.shown.serial};
  const std::shared_ptr<Device> last = devices_.at(key);
  devices_.erase(key);
  {
    const std::lock_guard lock(mutex_);
    views_.erase(key);
  }
  if (last->reported) observer_.device_removed(*last->reported);
}

// ---- the search

void DeviceTable::search() {
  for (const auto& [key, device] : devices_) {
    if (device->is_present && device->shown.is_usable) search_soon(*device);
  }
}

// One that is under way may have looked already: the next comes soon after it.
void DeviceTable::search_soon(Device& device) {
  const auto now = steady_clock::now();
  device.fresh_until = now + kFreshTime;
  const auto soonest = std::max(now, device.searched_at + kLeastSearchPause);
  if (device.is_searching || device.timer.expiry() <= soonest) return;
  search_after(device, std::chrono::ceil<milliseconds>(soonest - now));
}

void DeviceTable::search_after(Device& device, milliseconds pause) {
  const std::weak_ptr<Device> weak = devices_.at({device.source.via(), device.shown.serial});
  device.timer.expires_after(pause);
  device.timer.async_wait([this, weak](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->is_present && self->shown.is_usable) search_now(*self);
  });
}

void DeviceTable::search_now(Device& device) {
  const std::weak_ptr<Device> weak = devices_.at({device.source.via(), device.shown.serial});
  const uint64_t search = ++device.search;
  device.is_searching = true;
  device.searched_at = steady_clock::now();
  device.source.find_agents(device.shown.serial,
                            [this, weak, search](Result<std::vector<std::string>> found) {
                              const auto self = weak.lock();
                              if (self && self->search == search) {
                                on_agents(*self, std::move(found));
                              }
                            });
}

// The endpoints on the device that are dialled even if no search finds them.
std::vector<std::string> DeviceTable::wanted_on(const Device& device) const {
  const std::string prefix = address_of(device.source, device.shown.serial, "");
  std::vector<std::string> names;
  for (const std::string& address : wanted_) {
    if (address.starts_with(prefix)) names.push_back(address.substr(prefix.size()));
  }
  return names;
}

bool DeviceTable::is_wanted(const Device& device, const std::string& endpoint) const {
  const std::vector<std::string> wanted = wanted_on(device);
  return std::find(wanted.begin(), wanted.end(), endpoint) != wanted.end();
}

void DeviceTable::on_agents(Device& device, Result<std::vector<std::string>> found) {
  device.is_searching = false;
  if (found.ok()) {
    for (std::string& name : wanted_on(device)) found->push_back(std::move(name));
  }
  device.search_fault = found.ok() ? "" : found.error().message;
  if (found.ok()) {
    for (const std::string& name : *found) {
      Endpoint& endpoint = device.endpoints[name];
      if (!endpoint.is_attached && !endpoint.is_released) dial(device, name, endpoint);
    }
    std::vector<std::string> lost;
    for (const auto& [name, endpoint] : device.endpoints) {
      const bool is_there = std::find(found->begin(), found->end(), name) != found->end();
      // A stream that is up knows better than any list.
      if (!is_there && !endpoint.is_up) lost.push_back(name);
    }
    for (const std::string& name : lost) lose_endpoint(device, name);
  }
  const bool is_fresh = steady_clock::now() < device.fresh_until;
  search_after(device, is_fresh ? kFreshSearchPause : kSearchPause);
  notify(device);
}

void DeviceTable::dial(Device& device, const std::string& name, Endpoint& endpoint) {
  endpoint.is_attached = true;
  endpoint.status = "dialling";
  observer_.endpoint_found(address_of(device.source, device.shown.serial, name));
}

void DeviceTable::lose_endpoint(Device& device, const std::string& endpoint) {
  const auto lost = device.endpoints.find(endpoint);
  if (lost == device.endpoints.end()) return;
  const bool was_attached = lost->second.is_attached;
  device.endpoints.erase(lost);
  if (was_attached)
    observer_.endpoint_gone(address_of(device.source, device.shown.serial, endpoint));
}

// ---- reports of the observer

DeviceTable::Found DeviceTable::find(const std::string& address) {
  for (const auto& [key, device] : devices_) {
    const std::string prefix = address_of(device->source, key.second, "");
    if (!address.starts_with(prefix)) continue;
    const std::string endpoint = address.substr(prefix.size());
    if (device->endpoints.contains(endpoint)) return {device.get(), endpoint};
  }
  return {};
}

// The endpoint may be a new one. Serials hold colons, and so do names of endpoints: of two devices
// that fit, the longer serial.
DeviceTable::Found DeviceTable::find_device(const std::string& address) {
  Found best = find(address);
  if (best.device != nullptr) return best;
  size_t longest = 0;
  for (const auto& [key, device] : devices_) {
    const std::string prefix = address_of(device->source, key.second, "");
    if (!address.starts_with(prefix) || prefix.size() <= longest) continue;
    longest = prefix.size();
    best = {device.get(), address.substr(prefix.size())};
  }
  return best;
}

Status DeviceTable::attach(const std::string& address) {
  const Found found = find_device(address);
  if (found.device == nullptr) {
    return Error{Code::kNotFound, address + ": no such device; collectctl devices lists them"};
  }
  Device& device = *found.device;
  if (found.name.empty()) {
    return Error{Code::kInvalidArgument,
                 address +
                     ": the endpoint on the device is missing; it is attached as adb:SERIAL:NAME"
                     " or usbmux:SERIAL:tcp:PORT"};
  }
  if (!device.is_present || !device.shown.is_usable) {
    return device.is_present
               ? Error{Code::kUnsupported, fmt::format("{}: {}", address, device.shown.reason)}
               : Error{Code::kNotFound, fmt::format("{}: {}", address, kUnplugged)};
  }
  if (!device.endpoints.contains(found.name) && device.endpoints.size() >= kMaxEndpoints) {
    return Error{Code::kLimit,
                 fmt::format("{}: more than {} endpoints on one device", address, kMaxEndpoints)};
  }
  Endpoint& endpoint = device.endpoints[found.name];
  endpoint.is_released = false;
  if (!endpoint.is_attached) dial(device, found.name, endpoint);
  notify(device);
  return {};
}

Result<std::string> DeviceTable::status_of(const std::string& address) {
  const Found found = find(address);
  if (found.device == nullptr) return Error{Code::kNotFound, address + ": no one listens there"};
  const Endpoint& endpoint = found.device->endpoints[found.name];
  return endpoint.is_up ? "" : endpoint.status;
}

void DeviceTable::open(const std::string& address, DeviceSource::OnOpen done) {
  const Found found = find(address);
  if (found.device == nullptr || !found.device->is_present) {
    asio::post(io_, [done = std::move(done), address] {
      done(Error{Code::kUnavailable, address + " is not there now"});
    });
    return;
  }
  const std::weak_ptr<Device> weak =
      devices_.at({found.device->source.via(), found.device->shown.serial});
  found.device->source.open(
      found.device->shown.serial, found.name,
      [this, weak, name = found.name, done = std::move(done)](Result<Socket> opened) {
        const auto device = weak.lock();
        const bool is_gone = !opened.ok() && opened.code() == Code::kNotFound;
        if (device && is_gone && device->endpoints.contains(name) &&
            !device->endpoints.at(name).is_up && !is_wanted(*device, name)) {
          lose_endpoint(*device, name);
          notify(*device);
        }
        done(std::move(opened));
      });
}

void DeviceTable::report(const std::string& address, EndpointReport report) {
  const Found found = find(address);
  if (found.device == nullptr) return;
  Endpoint& endpoint = found.device->endpoints[found.name];
  if (!endpoint.is_attached) return;
  endpoint.status = std::move(report.status);
  endpoint.trouble = report.trouble;
  notify(*found.device);
}

void DeviceTable::agent_is(const std::string& address, const std::string& agent, bool is_up,
                           bool is_gone) {
  const Found found = find(address);
  if (found.device == nullptr) return;
  Device& device = *found.device;
  Endpoint& endpoint = device.endpoints[found.name];
  if (endpoint.agent != agent && !is_up && !endpoint.agent.empty()) return;  // of one before
  const bool went_down = endpoint.is_up && !is_up;
  endpoint.is_up = is_up;
  endpoint.agent = is_gone ? "" : agent;
  if (is_up && !endpoint.is_released) {
    endpoint.status.clear();
    endpoint.trouble = EndpointReport::Trouble::kNone;
  }
  if (is_gone && !endpoint.is_attached && !endpoint.is_released) device.endpoints.erase(found.name);
  if (went_down && device.is_present && device.shown.is_usable) {
    search_soon(device);  // perhaps the program is started again
  }
  notify(device);
  remove_if_unused(device);
}

void DeviceTable::release(const std::string& address) {
  const Found found = find(address);
  if (found.device == nullptr) return;
  Endpoint& endpoint = found.device->endpoints[found.name];
  endpoint.is_released = true;
  endpoint.is_attached = false;
  endpoint.status = kDetached;
  notify(*found.device);
}

}  // namespace collect::attach
