// How many descriptors there are, and one that is kept for the moment when there are none.
#pragma once

#include <cstdint>

#include "daemon/ingest/link/options.h"
#include "daemon/principal/budget.h"

namespace collect::ingest {

// What the system lets this process open, without kReservedDescriptors.
uint64_t usable_descriptors();
// The budget of all agents, as the options and the system's limits give it.
principal::BudgetLimits budget_limits(const IngestOptions& options);

// A descriptor that represents nothing. When accept() fails for want of one, it is given up for the
// moment that it takes to accept a connection, say why it is refused, and close it: else the
// connection would wait in the listener's queue, and the listener would be readable for ever.
//
// On the acceptor's io thread.
class SpareDescriptor {
 public:
  SpareDescriptor();
  ~SpareDescriptor();
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  // Accepts what waits at `listener`, kMaxTurnedAway at most, and turns it away. With `say_why` the
  // peer gets a Refuse that asks it to come again.
  uint32_t turn_away(int listener, bool say_why);

 private:
  int spare_ = -1;
};

}  // namespace collect::ingest
