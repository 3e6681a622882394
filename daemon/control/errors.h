// Errors as clients of the control plane see them.
#pragma once

#include "formats/core/result.h"
#include "google/rpc/status.pb.h"

namespace collect::control {

// The code is one of gRPC's. Its ErrorInfo has the domain "collectord" and a reason for each Code.
// The message is printable: it may name what an agent called itself.
google::rpc::Status rpc_status(const Error& error);

}  // namespace collect::control
