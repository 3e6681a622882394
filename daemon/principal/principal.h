// Whom a connection belongs to. Permissions ask for it, and every limit is charged to it: the
// agents and clients of one user, of one certificate, or of one remote address share one budget.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

namespace collect::principal {

struct Principal {
  enum class Kind : uint8_t {
    kAddress,      // a remote host: an IPv4 address, or the first 64 bits of an IPv6 one
    kUid,          // a user of this machine
    kCertificate,  // the holder of a client certificate's key
    kUnknown,      // on this machine, and the system does not say whose it is
  };
  Kind kind = Kind::kUnknown;
  // The address as text, the certificate's SHA-256 in hex, or the uid in decimal. Made by us, never
  // a peer's own words, so it is fit for logs.
  std::string id;

  static Principal of_uid(uid_t uid) { return {Kind::kUid, std::to_string(uid)}; }
  auto operator<=>(const Principal&) const = default;
};

}  // namespace collect::principal
