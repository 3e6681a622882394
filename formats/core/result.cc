#include "formats/core/result.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "formats/core/text/printable.h"

namespace collect {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kAlreadyExists:
      return "already exists";
    case Code::kDamaged:
      return "damaged";
    case Code::kTruncated:
      return "truncated";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kLimit:
      return "limit exceeded";
    case Code::kExhausted:
      return "out of resources";
    case Code::kNoSpace:
      return "no space";
    case Code::kIo:
      return "I/O error";
    case Code::kPermission:
      return "permission denied";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  const bool says_what = error.code != Code::kDamaged && error.code != Code::kTruncated;
  return printable_sentence(
      says_what ? error.message : fmt::format("{}: {}", code_name(error.code), error.message));
}

Error errno_error(int error_number, std::string what) {
  what += ": ";
  what += std::generic_category().message(error_number);
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return {Code::kNotFound, std::move(what)};
    case EEXIST:
      return {Code::kAlreadyExists, std::move(what)};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {Code::kNoSpace, std::move(what)};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Code::kPermission, std::move(what)};
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return {Code::kExhausted, std::move(what)};
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ETIMEDOUT:
    case EADDRINUSE:
      return {Code::kUnavailable, std::move(what)};
    case EINVAL:
      return {Code::kInvalidArgument, std::move(what)};
    default:
      return {Code::kIo, std::move(what)};
  }
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace collect
