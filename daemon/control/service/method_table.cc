#include "daemon/control/service/method_table.h"

#include <fmt/core.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include "formats/core/threads.h"

namespace collect::control {
namespace {

using MessageCoding = grpc::SerializationTraits<google::protobuf::MessageLite>;

// Ends at once, with an error.
class RefusedStream final : public MessageStream {
 public:
  explicit RefusedStream(const Error& error) { Finish(to_grpc_status(error)); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::Status write_message(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer written;  // gRPC takes none that holds something
  bool owns = false;
  grpc::Status status = MessageCoding::Serialize(message, &written, &owns);
  if (status.ok()) bytes = std::move(written);
  return status;
}

bool read_message(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::ByteBuffer copy = bytes;  // of references
  return MessageCoding::Deserialize(&copy, &message).ok();
}

Error MethodTable::not_a(const google::protobuf::MessageLite& request) {
  return {Code::kInvalidArgument, "the request is no " + request.GetTypeName()};
}

int MethodTable::add(const char* method, grpc::internal::RpcMethod::RpcType type) {
  paths_.push_back(fmt::format("/{}/{}", service_, method));
  AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type, nullptr));
  return static_cast<int>(paths_.size()) - 1;
}

void MethodTable::add_unary(const char* method, AnyUnary function) {
  using Handler = grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
  auto handle = [this, function = std::move(function)](
                    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                    grpc::ByteBuffer* response) -> grpc::ServerUnaryReactor* {
    const auto call = UnaryCall::open(live_, response);
    const Status ran = contain([&] { function(*request, context->peer(), call); });
    if (!ran.ok()) call->fail(ran.error());
    return call.get();
  };
  MarkMethodRawCallback(add(method, grpc::internal::RpcMethod::NORMAL_RPC),
                        new Handler(std::move(handle)));
}

void MethodTable::add_stream(const char* method, AnyStream function) {
  using Handler =
      grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
  auto handle = [function = std::move(function)](grpc::CallbackServerContext*,
                                                 const grpc::ByteBuffer* request) {
    Error refused{Code::kInvalidArgument, ""};
    MessageStream* const stream = function(*request, refused);
    return stream != nullptr ? stream : new RefusedStream(refused);
  };
  MarkMethodRawCallback(add(method, grpc::internal::RpcMethod::SERVER_STREAMING),
                        new Handler(std::move(handle)));
}

}  // namespace collect::control
