// The fleet's tables: an entry for each collector, a lease for each device and each process.
// LEASES.md "Tables" has their columns and the rules. All times are those of the database.
//
// Each function is one statement or a few, each of which holds by itself. Errors are those of
// Database::run.
#pragma once

#include <string>
#include <vector>

#include "collect/control/v1/fleet.pb.h"
#include "daemon/fleet/database.h"
#include "daemon/fleet/holding.h"
#include "formats/core/result.h"

namespace collect::fleet {

namespace api = ::collect::control::v1;

inline constexpr size_t kMaxListed = 1'000;  // collectors, and leases of a device, in one answer

struct LeaseCounts {
  uint32_t held = 0;
  uint32_t elsewhere = 0;  // of what we have: another collector that is there has the lease
};

class LeaseTable {
 public:
  // `database` outlives it.
  explicit LeaseTable(Database& database) : database_(database) {}

  // Makes the tables where there are none.
  Status prepare();
  // Removes entries of former runs of this collector, and those that nobody has renewed for a week.
  Status forget(const Self& self);
  // Renews the entry, and with it every lease.
  Status renew(const Self& self, const Holdings& holdings);
  // Gives up what is not in `holdings`, takes over what is in `arrived`, and of the rest what
  // nobody who is there has.
  Result<LeaseCounts> put(const Self& self, const std::vector<Holding>& holdings,
                          const std::vector<Holding>& arrived);
  Status leave(const Self& self);

  // `device`: api::ListCollectorsRequest.device.
  Result<std::vector<api::FleetCollector>> list(const std::string& device);

 private:
  Status run(const char* statement, const std::vector<std::string>& parameters);

  Database& database_;
};

}  // namespace collect::fleet
