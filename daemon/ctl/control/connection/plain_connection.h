// A plain connection to a collector, checked before anything is sent on it: where no certificate
// says who answers, the user who serves the port or the socket does.
#pragma once

#include <string>

#include "formats/core/result.h"

namespace collect::ctl {

// A connected, non-blocking descriptor, which the caller closes. `address` is host:port or
// unix:/path. kUnavailable: no one answers. kNotFound: there is no such host. kPermission: another
// user of this machine does (daemon/DAEMON.md "Who gets in").
Result<int> connect_plain(const std::string& address);

// The messages for an address whose host is not known, and where no one answers.
Error no_host(const std::string& host);
Error no_collector_answers(const std::string& address);

// Whether the peer of a connection has ended it.
bool has_ended(int connected);

}  // namespace collect::ctl
