// Which functions an agent records: what people asked for, and what was switched off since because
// it was called too often.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/ingest/session/rate_watch.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

class AgentFilter {
 public:
  // Null: every function.
  const storage::FunctionFilter* get() const { return filter_ ? &*filter_ : nullptr; }
  // Also with lists that are empty: every function again, those that were switched off too.
  void set(const storage::FunctionFilter& filter);
  // What the next recording begins with: it holds from its start on.
  void set_for_start(storage::FunctionFilter filter) { filter_ = std::move(filter); }
  void begin_recording(uint64_t start_ns);

  // Those that are on, and that there is room for (storage::kMaxSwitchedOff).
  std::vector<HotFunction> still_on(const std::vector<HotFunction>& functions) const;
  // How many of them were on.
  size_t switch_off(const std::vector<HotFunction>& functions, uint64_t at_ns);

 private:
  bool is_off(uint64_t function_id) const;

  std::optional<storage::FunctionFilter> filter_;
};

// By which the agent is asked to switch them off.
wire::Command switch_off_command(const std::vector<HotFunction>& functions);

}  // namespace collect::ingest
