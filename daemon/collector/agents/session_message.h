// What storage knows of a session, as the control plane says it: the collector of its own, and
// collectctl of those that it reads from a directory.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "collect/control/v1/control.pb.h"
#include "storage/manifest/manifest.h"

namespace collect {

control::v1::SymbolsState to_message(storage::SymbolsState state);
control::v1::ProcessEnd to_message(const storage::ProcessEnd& end);
// Nanoseconds since the epoch.
google::protobuf::Timestamp timestamp_of(uint64_t unix_ns);

}  // namespace collect
