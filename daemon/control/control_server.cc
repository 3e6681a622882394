#include "daemon/control/control_server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <utility>

#include "daemon/control/credentials.h"
#include "daemon/control/relay/control_address.h"
#include "daemon/control/relay/control_listener.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/service/collector_service.h"
#include "daemon/control/service/health_service.h"
#include "daemon/control/service/reactors.h"
#include "daemon/control/service/reflection_service.h"

namespace collect::control {
namespace {

constexpr std::chrono::milliseconds kGoodbyeTime{50};  // for answers that are on their way
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

bool asks_for_proof(const ControlAccess& access) {
  return !access.certificate.empty() && (!access.token.empty() || !access.client_ca.empty());
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

void LiveCalls::wait_until_idle(std::chrono::milliseconds bound) {
  std::unique_lock lock(mutex_);
  idle_.wait_for(lock, bound, [this] { return calls_ == 0; });
}

void LiveCalls::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return calls_ == 0; });
}

struct ControlServer::State {
  explicit State(CollectorApi& collector)
      : service(make_collector_service(
            collector, live,
            [this](const std::string& peer) { return listener->principal_of(peer); })),
        health(live),
        reflection(live, services()),
        reflection_alpha(live, services()) {}

  static std::vector<std::string> services() {
    return {"collect.control.v1.Collector", "grpc.health.v1.Health",
            ReflectionV1::Service::service_full_name(),
            ReflectionV1Alpha::Service::service_full_name()};
  }

  const std::shared_ptr<LiveCalls> live = std::make_shared<LiveCalls>();
  const std::unique_ptr<grpc::Service> service;
  HealthService health;
  ReflectionService<ReflectionV1> reflection;
  ReflectionService<ReflectionV1Alpha> reflection_alpha;
  std::unique_ptr<ControlListener> listener;
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
  quiet_grpc();

  auto state = std::make_unique<State>(collector);
  state->is_reachable = is_reachable;
  if (!parsed->unix_socket) state->access = access;
  ControlListener::Options options;
  options.is_tls = !state->access.certificate.empty();
  options.asks_for_proof = asks_for_proof(state->access);
  options.local = access.local;
  if (parsed->unix_socket && !is_inherited) options.unix_path = parsed->path;
  auto listener = is_inherited ? ControlListener::take_over(listening, options)
                               : ControlListener::open(*parsed, options);
  if (!listener.ok()) return listener.error();
  state->listener = std::move(listener).value();
  state->check = std::make_shared<TokenCheck>(
      state->access.token, [listener = state->listener.get()] { return listener->connected(); });
  grpc::ServerBuilder builder;
  state->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      server_credentials(state->access, state->check));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.RegisterService(state->service.get());
  builder.RegisterService(&state->health);
  builder.RegisterService(&state->reflection);
  builder.RegisterService(&state->reflection_alpha);
  state->server = builder.BuildAndStart();
  if (!state->server) return Error{Code::kIo, "gRPC does not start"};

  if (!parsed->unix_socket) parsed->port = state->listener->port();
  state->address = parsed->target();
  state->port = parsed->port;
  state->health.set_serving(true);
  COLLECT_TRY(state->listener->start([acceptor = state->acceptor.get()](int handle) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters taken;
    taken.fd = handle;
    acceptor->HandleNewConnection(&taken);
  }));
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
  if (state_->port == 0) return;  // a Unix socket asks for nothing
  state_->check->set_token(access.token);
  if (state_->listener) state_->listener->set_asks_for_proof(asks_for_proof(access));
}

void ControlServer::shutdown(std::chrono::milliseconds deadline) {
  if (!state_->server) return;
  state_->health.set_serving(false);
  // gRPC would cancel the watches only when the deadline has passed.
  state_->live->end_watches();
  state_->listener->stop_accepting();
  // gRPC waits until all connections are closed, and clients without a call close theirs only when
  // they are asked for something. So the calls are waited for here, and hardly anything there.
  state_->live->wait_until_idle(deadline);
  state_->server->Shutdown(std::chrono::system_clock::now() + kGoodbyeTime);
  state_->server->Wait();
  state_->live->wait_until_idle();
  state_->server.reset();
  state_->listener.reset();  // last: the answers of the last calls go through it
}

}  // namespace collect::control
