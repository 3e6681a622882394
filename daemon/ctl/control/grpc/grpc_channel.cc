#include <fcntl.h>
#include <fmt/core.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/support/sync_stream.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/ctl/control/connection/control_channel.h"
#include "daemon/ctl/control/connection/plain_connection.h"
#include "daemon/ctl/control/grpc/credentials.h"
#include "daemon/ctl/control/messages/status_code.h"
#include "daemon/machine/machine_limits.h"
#include "formats/core/address.h"

namespace collect::ctl {
namespace {

using grpc::internal::RpcMethod;
using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

// What a client of gRPC takes, at most.
constexpr MachineNeeds kNeeds{8, size_t{48} << 20, 12};

grpc::ChannelArguments arguments_for(const ControlTarget& target) {
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

grpc::ByteBuffer bytes_of(const std::string& message) {
  const grpc::Slice slice(message);
  return {&slice, 1};
}

std::string text_of(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;
  text.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

class GrpcChannel final : public ControlChannel {
 public:
  // Without credentials plain connections are made, one after the other.
  GrpcChannel(ControlTarget target, const Credentials& credentials) : target_(std::move(target)) {
    if (credentials == nullptr) return;
    channel_ = grpc::CreateCustomChannel(target_.address, credentials, arguments_for(target_));
    is_plain_ = false;
  }
  ~GrpcChannel() override {
    if (plain_ >= 0) ::close(plain_);
  }

  Result<std::string> call(const std::string& method, const std::string& request,
                           std::chrono::milliseconds deadline) override {
    COLLECT_TRY(open());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    grpc::ByteBuffer answer;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel_.get(), RpcMethod(method.c_str(), RpcMethod::NORMAL_RPC, channel_), &context,
        bytes_of(request), &answer);
    if (!status.ok()) return error(status);
    answered_ = true;
    return text_of(answer);
  }

  Status read_all(const std::string& method, const std::string& request,
                  const std::function<bool(const std::string&)>& on_message,
                  const std::stop_token& stop) override {
    COLLECT_TRY(open());
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
            channel_.get(), RpcMethod(method.c_str(), RpcMethod::SERVER_STREAMING, channel_),
            &context, bytes_of(request)));
    grpc::ByteBuffer message;
    bool wanted = true;
    while (wanted && reader->Read(&message)) {
      answered_ = true;
      wanted = on_message(text_of(message));
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (!wanted || status.ok()) return {};
    return error(status);
  }

 private:
  // Before each call. gRPC would connect by itself, and again after an end, to any process that
  // listens then: so a plain connection is made here, once its server is known, and again by the
  // next call.
  Status open() {
    if (!is_plain_ || (plain_ >= 0 && !has_ended(plain_))) return {};
    if (plain_ >= 0) ::close(plain_);
    plain_ = -1;
    const Result<int> connected = connect_plain(target_.address);
    if (!connected.ok()) return connected.error();
    plain_ = ::fcntl(*connected, F_DUPFD_CLOEXEC, 0);
    grpc::ChannelArguments arguments = arguments_for(target_);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    channel_ = grpc::CreateCustomInsecureChannelFromFd(target_.address, *connected, arguments);
    return {};
  }

  Error error(const grpc::Status& status) const {
    const std::string& address = target_.address;
    // What a collector refuses has details.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !answered_ &&
        status.error_details().empty() && channel_->GetState(false) != GRPC_CHANNEL_READY) {
      const bool is_unknown = status.error_message().find("DNS") != std::string::npos;
      const auto where = parse_address(address);
      if (is_unknown && where.ok()) return no_host(where->host);
      const std::string advice = tls_advice(target_, status.error_message());
      if (advice.empty()) return no_collector_answers(address);
      return {Code::kUnavailable, fmt::format("the collector at {}: {}", address, advice)};
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return {Code::kUnavailable,
              fmt::format("the collector at {} did not answer in time", address)};
    }
    return {code_of(status.error_code()), status.error_message()};
  }

  const ControlTarget target_;
  bool is_plain_ = true;
  int plain_ = -1;  // the channel's connection once more, to see its end; -1: none
  std::shared_ptr<grpc::Channel> channel_;
  bool answered_ = false;  // once: what fails later is no wrong address
};

}  // namespace

Result<std::unique_ptr<ControlChannel>> open_channel(const ControlTarget& target) {
  if (!target.unresolved.empty()) return Error{Code::kInvalidArgument, target.unresolved};
  // gRPC ends the process, or waits for ever, where the system has none of it.
  static const Status probed = probe_machine(kNeeds);
  if (!probed.ok()) return probed.error();
  const Result<Credentials> credentials = channel_credentials(target);
  if (!credentials.ok()) return credentials.error();
  return std::unique_ptr<ControlChannel>(std::make_unique<GrpcChannel>(target, *credentials));
}

}  // namespace collect::ctl
