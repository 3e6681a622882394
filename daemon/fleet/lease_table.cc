#include "daemon/fleet/lease_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats/core/printable.h"
#include "formats/core/utf8.h"

namespace collect::fleet {
namespace {

// Whether the collector `c` is there. A heartbeat from the future is of no clock that counts.
#define COLLECT_IS_LIVE "c.heartbeat BETWEEN now() - interval '10 s' AND now() + interval '10 s'"
#define COLLECT_IS_OURS(table) "(" table ".collector, " table ".epoch) = ($1, $2::bigint)"
#define COLLECT_HOLDER_IS_LIVE(lease)                                               \
  "EXISTS (SELECT FROM collect_collectors c WHERE (c.collector, c.epoch) = (" lease \
  ".collector, " lease ".epoch) AND " COLLECT_IS_LIVE ")"
#define COLLECT_HOLDINGS                                                                     \
  "jsonb_to_recordset($3::jsonb) AS h (key text, device text, device_id text, device_model " \
  "text, process_name text, pid bigint, agent text)"

// One at a time: two CREATE TABLE IF NOT EXISTS of the same name can meet. The number is ours.
constexpr char kMakeTables[] = R"sql(
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(4992030523);
  CREATE TABLE IF NOT EXISTS collect_collectors (
    collector text NOT NULL,
    epoch bigint NOT NULL,
    control text NOT NULL,
    host text NOT NULL,
    version text NOT NULL,
    agents bigint NOT NULL,
    sessions bigint NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    heartbeat timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (collector, epoch));
  CREATE TABLE IF NOT EXISTS collect_leases (
    key text PRIMARY KEY,
    collector text NOT NULL,
    epoch bigint NOT NULL,
    device text NOT NULL,
    device_id text NOT NULL,
    device_model text NOT NULL,
    process_name text NOT NULL,
    pid bigint NOT NULL,
    agent text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (collector, epoch) REFERENCES collect_collectors ON DELETE CASCADE);
  CREATE INDEX IF NOT EXISTS collect_leases_holder ON collect_leases (collector, epoch);
END $$)sql";

constexpr char kTablesExist[] =
    "SELECT to_regclass('collect_collectors') IS NOT NULL AND to_regclass('collect_leases') IS NOT "
    "NULL";

// Where one collector is there can be no other: $3 and $4 say where.
constexpr char kForget[] = "DELETE FROM collect_collectors c WHERE NOT " COLLECT_IS_OURS(
    "c") " AND ((c.control, c.host) = ($3, $4) OR (c.collector = $1 AND NOT (" COLLECT_IS_LIVE
         "))"
         " OR c.heartbeat NOT BETWEEN now() - interval '7 days' AND now() + interval '7 days')";

constexpr char kRenew[] =
    "INSERT INTO collect_collectors (collector, epoch, control, host, version, agents, sessions) "
    "VALUES ($1, $2::bigint, $3, $4, $5, $6::bigint, $7::bigint) "
    "ON CONFLICT (collector, epoch) DO UPDATE SET control = excluded.control, "
    "host = excluded.host, version = excluded.version, agents = excluded.agents, "
    "sessions = excluded.sessions, heartbeat = now()";

constexpr char kGiveUp[] = "DELETE FROM collect_leases l WHERE " COLLECT_IS_OURS(
    "l") " AND l.key NOT IN (SELECT h.key FROM " COLLECT_HOLDINGS ")";

// $4: from whoever has it. Locked in one order, so that two collectors never wait for each other.
// Leases that are right already are not touched.
constexpr char kTake[] =
    "INSERT INTO collect_leases AS l "
    "(key, collector, epoch, device, device_id, device_model, process_name, pid, agent) "
    "SELECT h.key, $1, $2::bigint, h.device, h.device_id, h.device_model, h.process_name, h.pid, "
    "h.agent FROM " COLLECT_HOLDINGS
    " LEFT JOIN collect_leases held ON held.key = h.key "
    "WHERE held.key IS NULL OR $4::boolean OR (" COLLECT_IS_OURS("held")
    " AND (held.device, held.device_id, held.device_model, held.process_name, held.pid, held.agent)"
    " <> (h.device, h.device_id, h.device_model, h.process_name, h.pid, h.agent))"
    " OR NOT " COLLECT_HOLDER_IS_LIVE("held")
    " ORDER BY h.key "
    "ON CONFLICT (key) DO UPDATE SET collector = excluded.collector, epoch = excluded.epoch, "
    "device = excluded.device, device_id = excluded.device_id, "
    "device_model = excluded.device_model, process_name = excluded.process_name, "
    "pid = excluded.pid, agent = excluded.agent, since = CASE WHEN " COLLECT_IS_OURS("l")
    " THEN l.since ELSE now() END "
    "WHERE $4::boolean OR " COLLECT_IS_OURS("l") " OR NOT " COLLECT_HOLDER_IS_LIVE("l");

constexpr char kCount[] = "SELECT count(*) FILTER (WHERE " COLLECT_IS_OURS(
    "l") "), count(*) FILTER (WHERE NOT " COLLECT_IS_OURS("l") ") FROM " COLLECT_HOLDINGS
                                                               " JOIN collect_leases l ON l.key = "
                                                               "h.key";

constexpr char kLeave[] = "DELETE FROM collect_collectors c WHERE " COLLECT_IS_OURS("c");

// What a table holds may be anybody's: texts are cut, times that no difference can be made of left
// out.
#define COLLECT_SECONDS_SINCE(time) \
  "CASE WHEN isfinite(" time ") THEN extract(epoch FROM now() - " time ") END"
#define COLLECT_IS_DEVICE "$1 IN (l.device, l.device_id, l.device_model)"

constexpr char kList[] =
    "SELECT left(c.collector, 64), c.epoch, left(c.control, 512), left(c.host, 256), "
    "left(c.version, 64), " COLLECT_IS_LIVE ", " COLLECT_SECONDS_SINCE("c.since") ", "
    COLLECT_SECONDS_SINCE("c.heartbeat") ", c.agents, c.sessions, "
    "(SELECT count(DISTINCT l.device) FROM collect_leases l WHERE (l.collector, l.epoch) = "
    "(c.collector, c.epoch)) "
    "FROM collect_collectors c WHERE $1 = '' OR EXISTS (SELECT FROM collect_leases l WHERE "
    "(l.collector, l.epoch) = (c.collector, c.epoch) AND " COLLECT_IS_DEVICE ") "
    "ORDER BY " COLLECT_IS_LIVE " DESC, c.host, c.control, c.collector, c.epoch LIMIT $2::int";

constexpr char kListLeases[] =
    "SELECT left(l.collector, 64), l.epoch, left(l.device, 512), left(l.device_id, 512), "
    "left(l.device_model, 512), left(l.process_name, 512), l.pid, left(l.agent, "
    "64), " COLLECT_SECONDS_SINCE("l.since") " FROM collect_leases l WHERE " COLLECT_IS_DEVICE
                                             " ORDER BY l.device, l.pid, l.key LIMIT $2::int";

std::string json_of(const std::vector<Holding>& holdings) {
  auto list = nlohmann::json::array();
  for (const Holding& holding : holdings) {
    list.push_back({{"key", holding.key},
                    {"device", holding.device},
                    {"device_id", holding.device_id},
                    {"device_model", holding.device_model},
                    {"process_name", holding.process_name},
                    {"pid", holding.pid},
                    {"agent", holding.agent}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const Cell& cell) {
  const std::string text = cell.value_or("");
  return is_utf8(text) ? text : printable(text);  // a database may hold another encoding
}

double number_of(const Cell& cell) {
  double number = 0;
  const std::string text = cell.value_or("");
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && std::isfinite(number) ? std::max(number, 0.0) : 0;
}

uint32_t count_of(const Cell& cell) {
  return static_cast<uint32_t>(std::min<double>(number_of(cell), UINT32_MAX));
}

void set_duration(google::protobuf::Duration& duration, const Cell& cell) {
  constexpr double kMost = 315'576'000'000;  // of a Duration
  const double seconds = std::min(number_of(cell), kMost);
  duration.set_seconds(static_cast<int64_t>(seconds));
  duration.set_nanos(static_cast<int32_t>((seconds - std::floor(seconds)) * 1e9));
}

std::string name_of(const Row& row) {
  return "collectors/" + text_of(row[0]) + "-" + text_of(row[1]);
}

api::FleetCollector collector_of(const Row& row) {
  api::FleetCollector collector;
  collector.set_name(name_of(row));
  collector.set_control_address(text_of(row[2]));
  collector.set_host_name(text_of(row[3]));
  collector.set_version(text_of(row[4]));
  collector.set_state(row[5] == "t" ? api::COLLECTOR_STATE_LIVE : api::COLLECTOR_STATE_AWAY);
  if (row[6]) set_duration(*collector.mutable_uptime(), row[6]);
  if (row[7]) set_duration(*collector.mutable_heartbeat_age(), row[7]);
  collector.set_agents_connected(count_of(row[8]));
  collector.set_sessions_active(count_of(row[9]));
  collector.set_device_count(count_of(row[10]));
  return collector;
}

api::DeviceLease lease_of(const Row& row) {
  api::DeviceLease lease;
  lease.set_device(text_of(row[2]));
  lease.set_device_id(text_of(row[3]));
  lease.set_device_model(text_of(row[4]));
  lease.set_process_name(text_of(row[5]));
  lease.set_pid(count_of(row[6]));
  lease.set_agent(text_of(row[7]));
  if (row[8]) set_duration(*lease.mutable_age(), row[8]);
  return lease;
}

}  // namespace

Status LeaseTable::run(const char* statement, const std::vector<std::string>& parameters) {
  const auto rows = database_.run(statement, parameters, 0);
  return rows.ok() ? Status() : rows.error();
}

Status LeaseTable::prepare() {
  // An operator may have made the tables, for a role that can't.
  const auto exist = database_.run(kTablesExist, {}, 1);
  if (!exist.ok()) return exist.error();
  return !exist->empty() && exist->front().front() == "t" ? Status() : run(kMakeTables, {});
}

Status LeaseTable::forget(const Self& self) {
  return run(kForget,
             {self.collector, std::to_string(self.epoch), self.control_address, self.host_name});
}

Status LeaseTable::renew(const Self& self, const Holdings& holdings) {
  return run(kRenew,
             {self.collector, std::to_string(self.epoch), self.control_address, self.host_name,
              self.version, std::to_string(holdings.agents), std::to_string(holdings.sessions)});
}

Result<LeaseCounts> LeaseTable::put(const Self& self, const std::vector<Holding>& holdings,
                                    const std::vector<Holding>& arrived) {
  const std::string epoch = std::to_string(self.epoch);
  const std::string all = json_of(holdings);
  COLLECT_TRY(run(kGiveUp, {self.collector, epoch, all}));
  if (!arrived.empty()) COLLECT_TRY(run(kTake, {self.collector, epoch, json_of(arrived), "true"}));
  COLLECT_TRY(run(kTake, {self.collector, epoch, all, "false"}));
  const auto counts = database_.run(kCount, {self.collector, epoch, all}, 2);
  if (!counts.ok()) return counts.error();
  if (counts->empty()) return Error{Code::kUnavailable, "the database counts nothing"};
  return LeaseCounts{count_of(counts->front()[0]), count_of(counts->front()[1])};
}

Status LeaseTable::leave(const Self& self) {
  return run(kLeave, {self.collector, std::to_string(self.epoch)});
}

Result<std::vector<api::FleetCollector>> LeaseTable::list(const std::string& device) {
  const std::vector<std::string> parameters{device, std::to_string(kMaxListed)};
  const auto rows = database_.run(kList, parameters, 11);
  if (!rows.ok()) return rows.error();
  std::vector<api::FleetCollector> collectors;
  for (const Row& row : *rows) collectors.push_back(collector_of(row));
  if (device.empty()) return collectors;
  const auto leases = database_.run(kListLeases, parameters, 9);
  if (!leases.ok()) return leases.error();
  std::map<std::string, api::FleetCollector*> by_name;
  for (api::FleetCollector& collector : collectors) by_name[collector.name()] = &collector;
  for (const Row& row : *leases) {
    // Its collector may have come or gone between the two.
    const auto found = by_name.find(name_of(row));
    if (found != by_name.end()) *found->second->add_leases() = lease_of(row);
  }
  return collectors;
}

}  // namespace collect::fleet
