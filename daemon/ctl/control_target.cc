#include "daemon/ctl/control_target.h"

#include <cstdlib>

namespace collect::ctl {

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
