#include "agent/text.h"

#include <cerrno>

namespace collect::agent {
namespace {

// Length of the valid UTF-8 character at `at` (of `left` bytes); 0 when it is none.
size_t character_bytes(const uint8_t* at, size_t left) {
  const uint8_t lead = at[0];
  if (lead < 0x80) return 1;
  size_t count = 0;
  uint32_t value = 0;
  uint32_t least = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    count = 2;
    value = lead & 0x1Fu;
    least = 0x80;
  } else if ((lead & 0xF0u) == 0xE0) {
    count = 3;
    value = lead & 0x0Fu;
    least = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    count = 4;
    value = lead & 0x07u;
    least = 0x10000;
  } else {
    return 0;
  }
  if (count > left) return 0;
  for (size_t i = 1; i < count; ++i) {
    if ((at[i] & 0xC0u) != 0x80) return 0;
    value = value << 6 | (at[i] & 0x3Fu);
  }
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < least || value > 0x10FFFF || is_surrogate ? 0 : count;
}

}  // namespace

size_t copy_utf8(char* out, size_t out_bytes, const char* source, size_t source_bytes) {
  const auto* from = reinterpret_cast<const uint8_t*>(source);
  size_t source_length = 0;
  while (source_length < source_bytes && from[source_length] != 0) ++source_length;
  size_t used = 0;
  for (size_t at = 0; at < source_length;) {
    const size_t count = character_bytes(from + at, source_length - at);
    const size_t taken = count == 0 ? 1 : count;
    if (used + taken >= out_bytes) break;
    for (size_t i = 0; i < taken; ++i) out[used++] = count == 0 ? '?' : source[at + i];
    at += taken;
  }
  out[used] = '\0';
  return used;
}

const char* errno_text(int error_number) {
  switch (error_number) {
    case ECONNREFUSED:
      return "nobody listens there";
    case ENOENT:
      return "no such file";
    case ETIMEDOUT:
      return "no answer in time";
    case ECONNRESET:
      return "the connection was reset";
    case EPIPE:
      return "the connection is gone";
    case EHOSTUNREACH:
      return "no route to the host";
    case ENETUNREACH:
      return "the network can't be reached";
    case EADDRINUSE:
      return "the address is in use";
    case EACCES:
    case EPERM:
      return "permission denied";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    case ENOMEM:
    case ENOBUFS:
      return "not enough memory";
    case EAFNOSUPPORT:
      return "the address family is not supported";
    default:
      return "the system call failed";
  }
}

}  // namespace collect::agent
