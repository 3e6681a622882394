// Messages to and from lockdownd, which answers on port 62078 of every iPhone: four bytes of
// length, the highest first, then an XML property list. Only what needs no pairing: no session, no
// TLS, nothing that changes anything. Bytes in, values out; no sockets here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr uint16_t kLockdownPort = 62078;
inline constexpr size_t kLockdownLengthBytes = 4;
// What is asked for here is answered in below 1 KiB.
inline constexpr uint32_t kMaxLockdownMessageBytes = 64u << 10;
inline constexpr size_t kMaxLockdownTextBytes = 256;  // of one value

struct LockdownAnswer {
  std::string request;  // which it answers: "QueryType", "GetValue"
  std::string type;     // QueryType: "com.apple.mobile.lockdown", or that of a restore
  std::string value;    // GetValue: a text; empty where it is none
  std::string error;    // its own word, "MissingValue" for example; empty: none
};

// Whole messages, length included.
std::string lockdown_query_type();
std::string lockdown_get_value(const std::string& key);

// The length of the property list behind these four bytes; kDamaged: one that can't be believed.
Result<uint32_t> decode_lockdown_length(Bytes bytes);
Result<LockdownAnswer> decode_lockdown_answer(Bytes body);

}  // namespace collect::ctl
