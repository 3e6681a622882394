#include "daemon/ctl/online/fleet.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/ctl/online/client.h"
#include "daemon/ctl/online/devices.h"
#include "daemon/ctl/online/message_json.h"
#include "daemon/ctl/online/output.h"
#include "daemon/ctl/online/text.h"
#include "formats/core/address.h"
#include "formats/core/threads.h"

namespace collect::ctl {
namespace {

// What is asked of each collector, and how it is shown.
template <class Item>
struct Listing {
  const char* key;  // of the list in JSON
  Columns columns;
  std::function<Result<std::vector<Item>>(Client&)> fetch;
  std::function<std::vector<std::string>(const Item&)> row;
  const char* nothing;
};

template <class Item>
struct Answered {
  api::FleetCollector collector;
  std::optional<Error> error;  // it is there, and did not answer
  std::vector<Item> items;
};

std::string age_text(bool is_known, const google::protobuf::Duration& age) {
  return is_known ? short_duration(static_cast<double>(age.seconds()) + age.nanos() / 1e9) : "?";
}

std::string heartbeat_text(const api::FleetCollector& collector) {
  return age_text(collector.has_heartbeat_age(), collector.heartbeat_age());
}

std::string place_text(const api::FleetCollector& collector) {
  return printable(collector.host_name()) + " (" + printable(collector.control_address()) + ")";
}

// Only what our own settings could name goes to gRPC, which knows further forms.
Result<ControlTarget> target_of(const Online& online, const api::FleetCollector& collector) {
  const auto address = parse_address(collector.control_address());
  if (!address.ok()) return address.error();
  if (address->kind == Address::Kind::kAbstract) {
    return Error{Code::kInvalidArgument, "no control plane has an abstract address"};
  }
  ControlTarget target = online.control;
  target.address = to_string(*address);
  return target;
}

template <class Item>
void ask(const Online& online, const Listing<Item>& listing, Answered<Item>& asked) {
  if (asked.collector.state() != api::COLLECTOR_STATE_LIVE) return;
  const auto target = target_of(online, asked.collector);
  if (!target.ok()) {
    asked.error = target.error();
    return;
  }
  Client client(*target);
  auto items = listing.fetch(client);
  if (items.ok()) {
    asked.items = std::move(*items);
  } else {
    asked.error = items.error();
  }
}

template <class Item>
std::vector<Answered<Item>> ask_all(const Online& online, const Listing<Item>& listing,
                                    const api::ListCollectorsResponse& collectors) {
  std::vector<Answered<Item>> all;
  for (const api::FleetCollector& collector : collectors.collectors()) {
    all.push_back({collector, std::nullopt, {}});
  }
  std::atomic<size_t> next = 0;
  const auto ask_some = [&](size_t) {
    for (size_t at = next++; at < all.size(); at = next++) ask(online, listing, all[at]);
  };
  Workers others("ask", std::min(kAskedAtOnce, all.size()), ask_some);
  if (others.count() == 0) ask_some(0);
  others.join();
  return all;
}

template <class Item>
std::string json_text(const Listing<Item>& listing, const std::vector<Answered<Item>>& all) {
  Json document = json_document();
  document["collectors"] = Json::array();
  for (const Answered<Item>& one : all) {
    Json collector = json_of(one.collector);
    collector.erase("leases");
    if (one.error) {
      collector["error"] = error_json(*one.error);
    } else if (one.collector.state() == api::COLLECTOR_STATE_LIVE) {
      Json& items = collector[listing.key] = Json::array();
      for (const Item& item : one.items) items.push_back(json_of(item));
    }
    document["collectors"].push_back(std::move(collector));
  }
  return json_line(document);
}

template <class Item>
std::string table_text(const Online& online, const Listing<Item>& listing,
                       const std::vector<Answered<Item>>& all) {
  std::vector<std::string> names = listing.columns.names;
  names.insert(names.begin(), "COLLECTOR");
  Table table(names);
  for (const size_t column : listing.columns.right) table.right(column + 1);
  bool is_empty = true;
  for (const Answered<Item>& one : all) {
    for (const Item& item : one.items) {
      std::vector<std::string> row = listing.row(item);
      row.insert(row.begin(), printable(one.collector.control_address()));
      table.add(std::move(row));
      is_empty = false;
    }
  }
  return is_empty ? listing.nothing : table.text(online.columns);
}

template <class Item>
int list_fleet(const Online& online, const Listing<Item>& listing) {
  const auto collectors = Client(online.control).collectors("");
  if (!collectors.ok()) return failed(online, collectors.error());
  const std::vector<Answered<Item>> all = ask_all(online, listing, *collectors);
  online.out << (online.json ? json_text(listing, all) : table_text(online, listing, all));
  online.out.flush();
  int code = kExitOk;
  for (const Answered<Item>& one : all) {
    if (one.error) code = kExitFailed;
    if (online.json) continue;
    if (one.error) {
      online.err << "collectctl: " << place_text(one.collector)
                 << " was not listed: " << printable_sentence(one.error->message) << "\n";
    } else if (one.collector.state() != api::COLLECTOR_STATE_LIVE) {
      online.err << "collectctl: " << place_text(one.collector)
                 << " is away: its last heartbeat was " << heartbeat_text(one.collector)
                 << " ago\n";
    }
  }
  online.err.flush();
  return code;
}

std::string collectors_text(const api::ListCollectorsResponse& response, size_t columns) {
  Table table({"COLLECTOR", "HOST", "STATE", "VERSION", "AGENTS", "SESSIONS", "DEVICES", "UP",
               "HEARTBEAT"});
  for (const size_t column : {4, 5, 6, 7, 8}) table.right(column);
  for (const api::FleetCollector& one : response.collectors()) {
    table.add({printable(one.control_address()), printable(one.host_name()),
               state_word(one.state()), printable(one.version()),
               with_thousands(one.agents_connected()), with_thousands(one.sessions_active()),
               with_thousands(one.device_count()), age_text(one.has_uptime(), one.uptime()),
               heartbeat_text(one)});
  }
  return table.text(columns);
}

std::string leases_text(const api::ListCollectorsResponse& response, size_t columns) {
  Table table(
      {"DEVICE", "MODEL", "PROCESS", "PID", "AGENT", "COLLECTOR", "HOST", "STATE", "SINCE"});
  for (const size_t column : {3, 8}) table.right(column);
  bool is_empty = true;
  for (const api::FleetCollector& one : response.collectors()) {
    for (const api::DeviceLease& lease : one.leases()) {
      table.add({printable(lease.device()), printable(lease.device_model()),
                 printable(lease.process_name()),
                 lease.pid() == 0 ? "" : std::to_string(lease.pid()), short_name(lease.agent()),
                 printable(one.control_address()), printable(one.host_name()),
                 state_word(one.state()), age_text(lease.has_age(), lease.age())});
      is_empty = false;
    }
  }
  return is_empty ? "no collector has this device\n" : table.text(columns);
}

}  // namespace

int list_collectors(const Online& online, const std::string& device) {
  const auto response = Client(online.control).collectors(device);
  if (!response.ok()) return failed(online, response.error());
  return print(online, *response, [&] {
    return device.empty() ? collectors_text(*response, online.columns)
                          : leases_text(*response, online.columns);
  });
}

int list_fleet_agents(const Online& online, const std::string& filter) {
  return list_fleet(online,
                    Listing<api::Agent>{"agents", agent_columns(),
                                        [&filter](Client& client) { return client.agents(filter); },
                                        agent_row, "no agents\n"});
}

int list_fleet_sessions(const Online& online, const std::string& filter) {
  return list_fleet(
      online, Listing<api::Session>{"sessions", session_columns(),
                                    [&filter](Client& client) { return client.sessions(filter); },
                                    session_row, "no sessions\n"});
}

int list_fleet_devices(const Online& online, const std::string& filter) {
  const auto fetch = [&filter](Client& client) -> Result<std::vector<api::Device>> {
    const auto response = client.devices(filter);
    if (!response.ok()) return response.error();
    return std::vector<api::Device>(response->devices().begin(), response->devices().end());
  };
  return list_fleet(
      online, Listing<api::Device>{"devices", device_columns(), fetch, device_row, "no devices\n"});
}

}  // namespace collect::ctl
