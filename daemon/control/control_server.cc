#include "daemon/control/control_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "daemon/control/collector_service.h"
#include "daemon/control/control_address.h"
#include "daemon/control/control_listener.h"
#include "daemon/control/credentials.h"
#include "daemon/control/health_service.h"
#include "daemon/control/reactors.h"
#include "daemon/control/request_checks.h"

namespace collect::control {
namespace {

constexpr int kMaxStreamsPerConnection = 256;
constexpr int kMaxMetadataBytes = 16 * 1024;
constexpr int kHandshakeMs = 5'000;  // TLS and the first frames of HTTP/2
constexpr int kMaxIdleMs = 60'000;   // a connection without a call

// gRPC writes several lines of its own to standard error when a port is taken; ours is the one
// that the user gets. GRPC_VERBOSITY brings gRPC's back.
void quiet_grpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
}

}  // namespace

uint64_t LiveCalls::add_watch(EndWatch end) {
  const std::lock_guard lock(mutex_);
  if (closing_ || watches_.size() >= kMaxLiveWatches) return 0;
  watches_.emplace(++last_id_, std::move(end));
  return last_id_;
}

void LiveCalls::remove_watch(uint64_t id) {
  const std::lock_guard lock(mutex_);
  watches_.erase(id);
}

void LiveCalls::enter() {
  const std::lock_guard lock(mutex_);
  ++calls_;
}

void LiveCalls::leave() {
  const std::lock_guard lock(mutex_);
  if (--calls_ == 0) idle_.notify_all();
}

bool LiveCalls::closing() const {
  const std::lock_guard lock(mutex_);
  return closing_;
}

void LiveCalls::end_watches() {
  std::vector<EndWatch> ends;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [id, end] : watches_) ends.push_back(end);
  }
  for (const EndWatch& end : ends) end();
}

void LiveCalls::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return calls_ == 0; });
}

struct ControlServer::State {
  explicit State(CollectorApi& collector) : service(collector, live), health(live) {}

  const std::shared_ptr<LiveCalls> live = std::make_shared<LiveCalls>();
  CollectorService service;
  HealthService health;
  std::unique_ptr<ControlListener> listener;  // of TLS and inherited; gRPC's own elsewhere
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::shared_ptr<TokenCheck> check;
  ControlAccess access;       // as it was at the start
  bool is_reachable = false;  // by other machines
  std::string address;
  uint16_t port = 0;
  std::unique_ptr<grpc::Server> server;  // null once shut down; goes before the services
};

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& address,
                                                            CollectorApi& collector,
                                                            const ControlAccess& access,
                                                            int listening) {
  const bool is_inherited = listening >= 0;
  Result<ControlAddress> parsed =
      is_inherited ? bound_address(listening) : parse_control_address(address);
  if (!parsed.ok()) return parsed.error();
  const bool is_reachable = !parsed->unix_socket && !parsed->loopback;
  COLLECT_TRY(check_address(is_inherited ? parsed->target() : address, is_reachable, access));
  if (!is_inherited) COLLECT_TRY(check_free(*parsed));
  quiet_grpc();
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  auto state = std::make_unique<State>(collector);
  state->is_reachable = is_reachable;
  if (!parsed->unix_socket) state->access = access;
  const bool is_tls = !state->access.certificate.empty();
  if (is_tls || is_inherited) {
    auto listener =
        is_inherited ? ControlListener::take_over(listening) : ControlListener::open(*parsed);
    if (!listener.ok()) return listener.error();
    state->listener = std::move(listener).value();
  }
  state->check =
      std::make_shared<TokenCheck>(state->access.token, [listener = state->listener.get()] {
        return listener == nullptr ? std::string() : listener->connected();
      });
  int port = 0;
  grpc::ServerBuilder builder;
  const auto credentials = server_credentials(state->access, state->check);
  if (state->listener) {
    state->acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
    port = state->listener->port();
  } else {
    builder.AddListeningPort(parsed->target(), credentials, &port);
  }
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second daemon must fail
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.RegisterService(&state->service);
  builder.RegisterService(&state->health);
  state->server = builder.BuildAndStart();
  if (!state->server) return listen_error(*parsed);

  if (parsed->unix_socket && !is_inherited) {
    // The socket is as good as a login: only for the user who runs the daemon.
    ::chmod(parsed->path.c_str(), S_IRUSR | S_IWUSR);
  } else if (!parsed->unix_socket) {
    parsed->port = static_cast<uint16_t>(port);
  }
  state->address = parsed->target();
  state->port = parsed->port;
  state->health.set_serving(true);
  if (state->listener) {
    state->listener->start([acceptor = state->acceptor.get()](int handle) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters taken;
      taken.fd = handle;
      acceptor->HandleNewConnection(&taken);
    });
  }
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(state)));
}

ControlServer::ControlServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

ControlServer::~ControlServer() {
  shutdown(kShutdownDeadline);
}

uint16_t ControlServer::port() const {
  return state_->port;
}

const std::string& ControlServer::address() const {
  return state_->address;
}

Status ControlServer::check_access(const ControlAccess& access) const {
  if (state_->port == 0) return {};  // a Unix socket asks for nothing
  COLLECT_TRY(check_address(state_->address, state_->is_reachable, access));
  const ControlAccess& before = state_->access;
  if (before.certificate != access.certificate || before.key != access.key ||
      before.client_ca != access.client_ca) {
    return Error{Code::kUnsupported,
                 "tls_certificate, tls_key and tls_client_ca are other files than at the start: "
                 "put the new certificates into the old files, or start again"};
  }
  return {};
}

void ControlServer::set_access(const ControlAccess& access) {
  state_->check->set_token(access.token);
}

void ControlServer::shutdown(std::chrono::milliseconds deadline) {
  if (!state_->server) return;
  state_->health.set_serving(false);
  // gRPC would cancel the watches only when the deadline has passed.
  state_->live->end_watches();
  if (state_->listener) state_->listener->stop();
  state_->server->Shutdown(std::chrono::system_clock::now() + deadline);
  state_->server->Wait();
  state_->live->wait_until_idle();
  state_->server.reset();
}

}  // namespace collect::control
