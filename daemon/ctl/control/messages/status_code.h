// What the code of a gRPC status means to the caller.
#pragma once

#include <grpcpp/support/status_code_enum.h>

#include "formats/core/result.h"

namespace collect::ctl {

inline Code code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return Code::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Code::kAlreadyExists;
    case grpc::StatusCode::DATA_LOSS:
      return Code::kDamaged;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::kUnsupported;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Code::kLimit;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::kPermission;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::kUnavailable;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return Code::kCancelled;
    default:
      return Code::kIo;
  }
}

}  // namespace collect::ctl
