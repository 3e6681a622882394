// TLS and token of a connection to a collector, in gRPC's terms; and what it means when it is
// turned away.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "daemon/ctl/control/connection/control_target.h"
#include "formats/core/result.h"

namespace collect::ctl {

// Reads the files. Null: a plain connection needs none. Errors name the file, never what is in it.
Result<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const ControlTarget& target);

// What to do about a connection that did not come to be, from gRPC's own words for it; empty when
// they say nothing about TLS.
std::string tls_advice(const ControlTarget& target, const std::string& reason);

}  // namespace collect::ctl
