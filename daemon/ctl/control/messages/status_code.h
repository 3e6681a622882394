// What the code of a gRPC status means to the caller.
#pragma once

#include "formats/core/result.h"

namespace collect::ctl {

// As on the wire: google.rpc.Code.
enum class StatusCode : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

inline Code code_of(int status) {
  switch (static_cast<StatusCode>(status)) {
    case StatusCode::kInvalidArgument:
      return Code::kInvalidArgument;
    case StatusCode::kNotFound:
      return Code::kNotFound;
    case StatusCode::kAlreadyExists:
      return Code::kAlreadyExists;
    case StatusCode::kDataLoss:
      return Code::kDamaged;
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return Code::kUnsupported;
    case StatusCode::kResourceExhausted:
      return Code::kLimit;
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
      return Code::kPermission;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return Code::kUnavailable;
    case StatusCode::kCancelled:
    case StatusCode::kAborted:
      return Code::kCancelled;
  }
  return Code::kIo;
}

}  // namespace collect::ctl
