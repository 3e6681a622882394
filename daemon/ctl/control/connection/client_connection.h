// The connection of a Client: gRPC is known here and in client.cc alone.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/connection/credentials.h"
#include "daemon/ctl/control/connection/plain_connection.h"
#include "daemon/ctl/control/messages/status_code.h"
#include "daemon/machine/machine_limits.h"
#include "formats/core/address.h"

namespace collect::ctl {

inline grpc::ChannelArguments arguments_for(const ControlTarget& target) {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // our errors say it in one line
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a proxy cannot reach our loopback
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  if (!target.tls_name.empty()) {
    arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, target.tls_name);
  }
  return arguments;
}

// What a client of gRPC takes, at most.
inline constexpr MachineNeeds kGrpcNeeds{8, size_t{48} << 20, 12};

inline bool is_plain(const ControlTarget& target) {
  return target.address.starts_with("unix:") || target.tls_ca.empty();
}

inline void set_deadline(grpc::ClientContext& context, std::chrono::milliseconds deadline) {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
}

struct Client::Connection {
  using Stub = api::Collector::Stub;

  explicit Connection(const ControlTarget& to) : target(to), address(to.address) {
    if (!to.unresolved.empty()) {
      fault = Error{Code::kInvalidArgument, to.unresolved};
      return;
    }
    // gRPC ends the process, or waits for ever, where the system has none of it.
    static const Status probed = probe_machine(kGrpcNeeds);
    if (!probed.ok()) {
      fault = probed.error();
      return;
    }
    auto credentials = channel_credentials(to);
    if (!credentials.ok()) {
      fault = credentials.error();
    } else if (*credentials != nullptr) {
      channel = grpc::CreateCustomChannel(address, *credentials, arguments_for(to));
      stub = api::Collector::NewStub(channel);
    }
  }
  ~Connection() {
    if (plain >= 0) ::close(plain);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Before each call. gRPC would connect by itself, and again after an end, to any process that
  // listens then: so a plain connection is made here, once its server is known, and again by the
  // next call.
  Status open() {
    if (fault) return *fault;
    if (!is_plain(target) || (plain >= 0 && !has_ended(plain))) return {};
    if (plain >= 0) ::close(plain);
    plain = -1;
    const Result<int> connected = connect_plain(address);
    if (!connected.ok()) return connected.error();
    plain = ::fcntl(*connected, F_DUPFD_CLOEXEC, 0);
    grpc::ChannelArguments arguments = arguments_for(target);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    channel = grpc::CreateCustomInsecureChannelFromFd(address, *connected, arguments);
    stub = api::Collector::NewStub(channel);
    return {};
  }

  Error error(const grpc::Status& status) const {
    // What a collector refuses has details.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !answered &&
        status.error_details().empty() && channel->GetState(false) != GRPC_CHANNEL_READY) {
      const bool is_unknown = status.error_message().find("DNS") != std::string::npos;
      const auto where = parse_address(address);
      if (is_unknown && where.ok()) return no_host(where->host);
      const std::string advice = tls_advice(target, status.error_message());
      if (!advice.empty()) {
        return {Code::kUnavailable, fmt::format("the collector at {}: {}", address, advice)};
      }
      return {
          Code::kUnavailable,
          fmt::format(
              "no collector answers at {}; start collectord, or name its address with --control",
              address)};
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return {Code::kUnavailable,
              fmt::format("the collector at {} did not answer in time", address)};
    }
    return {code_of(status.error_code()), status.error_message()};
  }

  template <class Request, class Response>
  Result<Response> call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, std::chrono::milliseconds deadline) {
    if (Status opened = open(); !opened.ok()) return opened.error();
    grpc::ClientContext context;
    set_deadline(context, deadline);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return error(status);
    answered = true;
    return response;
  }

  template <class Request, class Message>
  Status read_all(grpc::ClientContext& context,
                  std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(grpc::ClientContext*,
                                                                               const Request&),
                  const Request& request, const std::function<bool(const Message&)>& on_message) {
    if (Status opened = open(); !opened.ok()) return opened;
    const auto reader = (stub.get()->*method)(&context, request);
    Message message;
    bool wanted = true;
    while (wanted && reader->Read(&message)) {
      answered = true;
      wanted = on_message(message);
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (!wanted || status.ok()) return {};
    return error(status);
  }

  const ControlTarget target;
  const std::string address;
  std::optional<Error> fault;  // no call is made
  int plain = -1;              // the channel's connection once more, to see its end; -1: none
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Stub> stub;
  bool answered = false;  // once: what fails later is no wrong address
};

}  // namespace collect::ctl
