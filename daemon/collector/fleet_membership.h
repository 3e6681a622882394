// The collector in its fleet, if it belongs to one: what the others are told, and who asks for
// them. daemon/fleet/LEASES.md.
//
// Thread-safe, but for join() and leave(), which are for the thread that runs the collector.
#pragma once

#include <memory>
#include <string>

#include "daemon/attach/attach.h"
#include "daemon/collector/registry.h"
#include "daemon/control/collector_api.h"
#include "daemon/fleet/member.h"
#include "storage/session_types.h"

namespace collect::daemon {

class FleetMembership {
 public:
  // `database`: URL; empty: it belongs to none. Serves ListCollectorsRequest. All outlive it.
  FleetMembership(const std::string& database, const Registry& registry,
                  const attach::Attach& devices, control::Methods& methods);

  // `control_address`: where others reach the control plane.
  Status join(const storage::CollectorIdentity& identity, const std::string& control_address);
  // Within a bound of its own.
  void leave();
  // Whoever comes back is seen by the next round, who comes or goes at once.
  void agent_changed(const ingest::AgentSnapshot& agent, bool is_new);
  void add_to(api::Stats& stats) const;

 private:
  void list(const api::ListCollectorsRequest& request,
            const control::Callback<api::ListCollectorsResponse>& done);

  const std::unique_ptr<fleet::Member> member_;  // null: it belongs to none
};

}  // namespace collect::daemon
