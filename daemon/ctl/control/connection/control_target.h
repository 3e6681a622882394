// Where a collector's control plane is, and what to show there.
#pragma once

#include <string>

namespace collect::ctl {

inline constexpr const char* kDefaultControlAddress = "127.0.0.1:7711";
inline constexpr const char* kServiceControlSocket = "/run/collectord/control.sock";

// The default address of a collector: a daemon at kDefaultControlAddress if one of this user
// or of root listens there, else the service's socket if this user may use it, else the former.
std::string default_control_address();

// Where a collector that listens everywhere is dialled on this machine.
std::string dialable(const std::string& address);

// Paths of files; TLS is spoken when tls_ca is given. A Unix socket is always plain.
struct ControlTarget {
  ControlTarget() = default;
  ControlTarget(std::string to) : address(std::move(to)) {}  // implicit: plain
  ControlTarget(const char* to) : address(to) {}             // implicit: plain

  std::string address;          // host:port or unix:/path
  std::string unresolved = {};  // why there is no address: what is asked of it fails with that
  std::string tls_ca;           // PEM: who must have signed the collector's certificate
  std::string tls_certificate;  // PEM: our own, where the collector asks for one
  std::string tls_key;
  std::string tls_name;    // the name in the collector's certificate, if not the address's
  std::string token_file;  // the token, on one line
};

// Fills what is empty from COLLECT_CONTROL_TLS_CA and so on; not the address.
void add_from_environment(ControlTarget& target);

}  // namespace collect::ctl
