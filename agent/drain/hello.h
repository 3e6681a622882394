// Who this process is: the constant part of Hello, and the token.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/settings.h"
#include "formats/core/bytes.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr size_t kMaxToken = 256;
inline constexpr const char* kAgentVersion = "0.1.0";

struct Token {
  uint8_t bytes[kMaxToken];
  size_t size;
  bool wanted;    // a token file is set
  bool readable;  // and holds a token
};

// Draws a process id and reads what the system says about the process. Once per process.
void fill_identity(const Settings& settings, collect_wire_Hello& hello);

// The token file's content without surrounding white space. Read at each connection, so that a new
// token needs no restart.
void read_token(const Settings& settings, Token& token);

// In constant time.
bool tokens_equal(Bytes one, Bytes other);

}  // namespace collect::agent
