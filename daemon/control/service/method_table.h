// A gRPC service as a table: each method under its name in the protocol, with the function that
// carries it out. Internal to daemon/control: this header pulls in gRPC.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/control/methods.h"
#include "daemon/control/service/reactors.h"

namespace collect::control {

// Owned by the control server and filled by the constructors of its services; gRPC's threads then
// read it. Functions are called on those threads, several at once.
class MethodTable : public grpc::Service {
 public:
  const std::shared_ptr<LiveCalls>& live() const { return live_; }

 protected:
  // `peer` is gRPC's name for the caller.
  template <class Request, class Response>
  using Unary =
      std::function<void(const Request&, const std::string& peer, Callback<Response> done)>;
  template <class Request>
  using Stream = std::function<MessageStream*(const Request&)>;

  // `service`: its full name in the protocol.
  MethodTable(std::string service, std::shared_ptr<LiveCalls> live)
      : service_(std::move(service)), live_(std::move(live)) {}

  template <class Request, class Response>
  void unary(const char* method, Unary<Request, Response> function) {
    add_unary(method, [function = std::move(function)](const grpc::ByteBuffer& bytes,
                                                       const std::string& peer,
                                                       const std::shared_ptr<UnaryCall>& call) {
      Request request;
      if (!read_message(bytes, request)) return call->fail(not_a(request));
      function(request, peer, [call](Result<Response> result) {
        if (result.ok()) {
          call->answer(*result);
        } else {
          call->fail(result.error());
        }
      });
    });
  }

  template <class Request>
  void stream(const char* method, Stream<Request> function) {
    add_stream(method,
               [function = std::move(function)](const grpc::ByteBuffer& bytes,
                                                Error& refused) -> MessageStream* {
                 Request request;
                 if (read_message(bytes, request)) return function(request);
                 refused = not_a(request);
                 return nullptr;
               });
  }

 private:
  using AnyUnary = std::function<void(const grpc::ByteBuffer&, const std::string& peer,
                                      const std::shared_ptr<UnaryCall>&)>;
  // Null: refused, and why.
  using AnyStream = std::function<MessageStream*(const grpc::ByteBuffer&, Error& refused)>;

  static Error not_a(const google::protobuf::MessageLite& request);
  void add_unary(const char* method, AnyUnary function);
  void add_stream(const char* method, AnyStream function);
  int add(const char* method, grpc::internal::RpcMethod::RpcType type);

  const std::string service_;
  const std::shared_ptr<LiveCalls> live_;
  std::deque<std::string> paths_;  // gRPC keeps pointers to them
};

}  // namespace collect::control
