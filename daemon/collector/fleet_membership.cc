#include "daemon/collector/fleet_membership.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <utility>
#include <vector>

#include "daemon/collector/fleet_view.h"
#include "formats/core/address.h"
#include "formats/core/hex.h"
#include "formats/core/version.h"

namespace collect::daemon {
namespace {

// Of the time that the collector has to stop, at its end.
constexpr std::chrono::milliseconds kLeaveBound{2'000};

// Of this machine; empty where it has none.
std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// A socket that listens everywhere names no address that others could dial.
std::string reachable_address(const std::string& address) {
  auto parsed = parse_address(address);
  if (!parsed.ok() || (parsed->host != "0.0.0.0" && parsed->host != "::")) return address;
  parsed->host = host_name();
  return to_string(*parsed);
}

std::unique_ptr<fleet::Member> member_of(const std::string& database, const Registry& registry,
                                         const attach::Attach& devices) {
  if (database.empty()) return nullptr;
  return std::make_unique<fleet::Member>(
      database, [&registry, &devices] { return holdings_of(registry, devices); });
}

}  // namespace

FleetMembership::FleetMembership(const std::string& database, const Registry& registry,
                                 const attach::Attach& devices, control::Methods& methods)
    : member_(member_of(database, registry, devices)) {
  methods.serve<api::ListCollectorsRequest, api::ListCollectorsResponse>(
      [this](const auto& request, auto done) { list(request, done); });
}

Status FleetMembership::join(const storage::CollectorIdentity& identity,
                             const std::string& control_address) {
  if (!member_) return {};
  return member_->start({hex_bytes(identity.id), identity.epoch, reachable_address(control_address),
                         host_name(), kVersion});
}

void FleetMembership::leave() {
  if (!member_ || member_->stop(kLeaveBound)) return;
  spdlog::warn("fleet: the database did not answer in time; others see this collector as away");
}

void FleetMembership::agent_changed(const ingest::AgentSnapshot& agent, bool is_new) {
  if (member_ && (is_new || !is_up(agent))) member_->wake();
}

void FleetMembership::add_to(api::Stats& stats) const {
  if (member_) *stats.mutable_fleet() = member_->status();
}

void FleetMembership::list(const api::ListCollectorsRequest& request,
                           const control::Callback<api::ListCollectorsResponse>& done) {
  if (!member_) {
    done(Error{Code::kUnsupported, "this collector belongs to no fleet; set fleet_database"});
    return;
  }
  member_->list(request.device(), [done](Result<std::vector<api::FleetCollector>> found) {
    if (!found.ok()) return done(found.error());
    api::ListCollectorsResponse response;
    for (api::FleetCollector& one : *found) *response.add_collectors() = std::move(one);
    done(std::move(response));
  });
}

}  // namespace collect::daemon
