// Messages of wire.proto as values of storage, and back. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "daemon/ingest/link/snapshot.h"
#include "formats/core/result.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

DetailMode detail_mode(int untrusted_mode);
std::vector<storage::ModuleInfo> to_storage(const wire::Modules& modules);
storage::StreamInfo to_storage(const wire::StreamOpen& stream);
storage::StreamEnd to_storage(const wire::StreamClose& stream);
storage::DetailStateChange to_storage(const wire::DetailState& change);
storage::ProcessEnd to_storage(const wire::ProcessEnd& end);
// Empty: of a kind that this version does not know. kDamaged: its times contradict each other.
Result<std::optional<storage::Stall>> to_storage(const wire::Stall& stall);
void set_position(const storage::StreamPosition& known, wire::StreamPosition& position);

}  // namespace collect::ingest
