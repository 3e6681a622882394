#include "agent/text.h"

#include <cerrno>

#include "formats/core/text/code_points.h"
#include "formats/core/text/utf8.h"

namespace collect::agent {

namespace {

template <class IsWanted>
size_t copy(char* out, size_t out_bytes, const char* source, size_t source_bytes,
            IsWanted is_wanted) {
  size_t source_length = 0;
  while (source_length < source_bytes && source[source_length] != '\0') ++source_length;
  size_t used = 0;
  for (size_t at = 0; at < source_length;) {
    const Utf8Step step = utf8_step(std::string_view(source + at, source_length - at));
    const bool is_kept = step.is_valid && is_wanted(step.code_point);
    const size_t read = step.is_valid ? step.bytes : 1;
    const size_t written = is_kept ? read : 1;
    if (used + written >= out_bytes) break;
    if (!is_kept) out[used++] = '?';
    for (size_t i = 0; is_kept && i < read; ++i) out[used++] = source[at + i];
    at += read;
  }
  out[used] = '\0';
  return used;
}

}  // namespace

size_t copy_utf8(char* out, size_t out_bytes, const char* source, size_t source_bytes) {
  return copy(out, out_bytes, source, source_bytes, [](uint32_t) { return true; });
}

size_t copy_printable(char* out, size_t out_bytes, const char* source, size_t source_bytes) {
  return copy(out, out_bytes, source, source_bytes, is_printable);
}

const char* errno_text(int error_number) {
  switch (error_number) {
    case ECONNREFUSED:
      return "no one listens there";
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
