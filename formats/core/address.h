// A listening address, as it is written everywhere: in settings, on command lines, in requests
// and in answers.
//
//   host:port, [v6]:port   a name or number, and a port from 0 to 65535
//   tcp:port               the same at 127.0.0.1, as agents get it
//   unix:/path             a Unix socket with a file
//   abstract:name          one without (Linux, Android)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect {

inline constexpr size_t kMaxSocketPath = 107;  // of a sockaddr_un, before its zero
inline constexpr size_t kMaxSocketName = 106;  // without a file
inline constexpr size_t kMaxHostBytes = 255;

struct Address {
  enum class Kind : uint8_t { kTcp, kUnix, kAbstract };
  Kind kind = Kind::kTcp;
  std::string host;  // kTcp: name or number, without brackets; else the path or the abstract name
  uint16_t port = 0;
};

// kInvalidArgument: `address "…": why it is none, and how one is written`.
Result<Address> parse_address(std::string_view text);
// As parse_address() takes it.
std::string to_string(const Address& address);

}  // namespace collect
