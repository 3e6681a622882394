#include "daemon/ctl/control/connection/control_target.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "daemon/ctl/control/connection/plain_connection.h"

namespace collect::ctl {

std::string default_control_address() {
  const Result<int> connected = connect_plain(kDefaultControlAddress);  // on loopback: at once
  if (connected.ok()) {
    ::close(*connected);
  } else if (::access(kServiceControlSocket, W_OK) == 0) {
    return std::string("unix:") + kServiceControlSocket;
  }
  return kDefaultControlAddress;
}

std::string dialable(const std::string& address) {
  for (std::string_view any : {"0.0.0.0:", "[::]:", "*:"}) {
    if (address.starts_with(any)) return "127.0.0.1:" + address.substr(any.size());
  }
  return address;
}

void add_from_environment(ControlTarget& target) {
  const auto fill = [](std::string& field, const char* variable) {
    const char* value = std::getenv(variable);
    if (field.empty() && value != nullptr) field = value;
  };
  fill(target.tls_ca, "COLLECT_CONTROL_TLS_CA");
  fill(target.tls_certificate, "COLLECT_CONTROL_TLS_CERTIFICATE");
  fill(target.tls_key, "COLLECT_CONTROL_TLS_KEY");
  fill(target.tls_name, "COLLECT_CONTROL_TLS_NAME");
  fill(target.token_file, "COLLECT_CONTROL_TOKEN_FILE");
}

}  // namespace collect::ctl
