#include "daemon/control/errors.h"

#include <grpcpp/support/status.h>

#include "daemon/control/service/reactors.h"
#include "formats/core/text/printable.h"
#include "google/rpc/error_details.pb.h"

namespace collect::control {
namespace {

// Clients take 8 KiB of metadata, and what is not ASCII travels as three characters a byte. The
// details have the message once more.
constexpr size_t kMaxStatusBytes = 1024;

struct Answer {
  grpc::StatusCode code;
  const char* reason;  // ErrorInfo
};

Answer answer_for(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, "INVALID_ARGUMENT"};
    case Code::kNotFound:
      return {grpc::StatusCode::NOT_FOUND, "NOT_FOUND"};
    case Code::kAlreadyExists:
      return {grpc::StatusCode::ALREADY_EXISTS, "ALREADY_EXISTS"};
    case Code::kDamaged:
      return {grpc::StatusCode::DATA_LOSS, "DAMAGED"};
    case Code::kTruncated:
      return {grpc::StatusCode::DATA_LOSS, "TRUNCATED"};
    case Code::kUnsupported:
      return {grpc::StatusCode::FAILED_PRECONDITION, "FAILED_PRECONDITION"};
    case Code::kLimit:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT"};
    case Code::kNoSpace:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "NO_SPACE"};
    case Code::kExhausted:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "MACHINE_EXHAUSTED"};
    case Code::kIo:
      return {grpc::StatusCode::INTERNAL, "IO"};
    case Code::kPermission:
      return {grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED"};
    case Code::kUnavailable:
      return {grpc::StatusCode::UNAVAILABLE, "UNAVAILABLE"};
    case Code::kCancelled:
      return {grpc::StatusCode::CANCELLED, "CANCELLED"};
  }
  return {grpc::StatusCode::UNKNOWN, "UNKNOWN"};
}

}  // namespace

google::rpc::Status rpc_status(const Error& error) {
  const Answer answer = answer_for(error.code);
  google::rpc::Status status;
  status.set_code(answer.code);
  status.set_message(printable_sentence(error.message, kMaxStatusBytes));
  google::rpc::ErrorInfo info;
  info.set_reason(answer.reason);
  info.set_domain("collectord");
  status.add_details()->PackFrom(info);
  return status;
}

grpc::Status to_grpc_status(const Error& error) {
  const google::rpc::Status status = rpc_status(error);
  return {static_cast<grpc::StatusCode>(status.code()), status.message(),
          status.SerializeAsString()};
}

}  // namespace collect::control
