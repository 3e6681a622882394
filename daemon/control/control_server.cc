#include "daemon/control/control_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "daemon/control/collector_service.h"
#include "daemon/control/control_address.h"
#include "daemon/control/health_service.h"
#include "daemon/control/reactors.h"
#include "daemon/control/request_checks.h"

namespace collect::control {
namespace {

constexpr int kMaxStreamsPerConnection = 256;
constexpr int kMaxMetadataBytes = 16 * 1024;

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
  std::string address;
  uint16_t port = 0;
  std::unique_ptr<grpc::Server> server;  // null once shut down; goes before the services
};

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& address,
                                                            CollectorApi& collector) {
  Result<ControlAddress> parsed = parse_control_address(address);
  if (!parsed.ok()) return parsed.error();
  COLLECT_TRY(check_free(*parsed));
  quiet_grpc();
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  auto state = std::make_unique<State>(collector);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(parsed->target(), grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second daemon must fail
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.RegisterService(&state->service);
  builder.RegisterService(&state->health);
  state->server = builder.BuildAndStart();
  if (!state->server) return listen_error(*parsed);

  if (parsed->unix_socket) {
    // The socket is as good as a login: only for the user who runs the daemon.
    ::chmod(parsed->path.c_str(), S_IRUSR | S_IWUSR);
  } else {
    parsed->port = static_cast<uint16_t>(port);
  }
  state->address = parsed->target();
  state->port = parsed->port;
  state->health.set_serving(true);
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

void ControlServer::shutdown(std::chrono::milliseconds deadline) {
  if (!state_->server) return;
  state_->health.set_serving(false);
  // gRPC would cancel the watches only when the deadline has passed.
  state_->live->end_watches();
  state_->server->Shutdown(std::chrono::system_clock::now() + deadline);
  state_->server->Wait();
  state_->live->wait_until_idle();
  state_->server.reset();
}

}  // namespace collect::control
