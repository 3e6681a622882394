#include "daemon/web/web_server.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <list>
#include <thread>
#include <utility>

#include "daemon/control/refusal_log.h"
#include "daemon/principal/peer_user.h"
#include "daemon/web/connection.h"
#include "daemon/web/limits.h"
#include "daemon/web/routes.h"
#include "formats/core/address.h"

namespace collect::web {
namespace {

using asio::ip::tcp;

Error not_served(const std::string& address, const std::string& why) {
  return {Code::kInvalidArgument, "web address " + address + ": " + why};
}

Result<tcp::endpoint> endpoint_of(const std::string& text) {
  const auto address = parse_address(text);
  if (!address.ok()) return Error{address.code(), "web " + address.error().message};
  if (address->kind != Address::Kind::kTcp) {
    return not_served(text, "browsers open host:port, as in 127.0.0.1:7712");
  }
  std::error_code error;
  asio::io_context io;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address->host, std::to_string(address->port), error);
  if (error || found.empty()) return not_served(text, "the name is not known");
  const tcp::endpoint endpoint = found.begin()->endpoint();
  if (!endpoint.address().is_loopback()) {
    return not_served(
        text,
        "other machines can reach it, and the live page serves this machine only: use "
        "127.0.0.1:7712, and from elsewhere ssh -L 7712:127.0.0.1:7712 HOST");
  }
  return endpoint;
}

Status listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, const std::string& text) {
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return Error{Code::kAlreadyExists, "web address " + text + " is in use"};
  }
  if (error) return errno_error(error.value(), "web address " + text);
  return {};
}

std::string describe(const principal::Principal& principal) {
  return principal.kind == principal::Principal::Kind::kUid ? "user " + principal.id
                                                            : "somebody on this machine";
}

}  // namespace

struct WebServer::State {
  State(const WebOptions& options, control::CollectorApi& collector)
      : local(options.local), feed(io, collector), pages(options.page_program) {}

  void accept();
  void decide(tcp::socket socket);
  bool make_room(const principal::Principal& principal, bool is_refused);
  void add(tcp::socket socket, principal::Principal principal, std::string refusal);
  void log_refusal(const std::string& who, const std::string& why);

  const principal::LocalAccess local;
  asio::io_context io;
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(io);
  std::optional<WebAccess> access;
  LiveFeed feed;
  PageMaker pages;
  std::optional<Routes> routes;
  std::optional<Connection::Server> server;
  std::list<std::shared_ptr<Connection>> connections;  // the oldest first
  principal::PeerLookup peers;
  control::RefusalLog refusals{kRefusalLogPeriod};
  std::string url;
  std::thread thread;
};

Result<std::unique_ptr<WebServer>> WebServer::start(const WebOptions& options,
                                                    control::CollectorApi& collector) {
  const auto endpoint = endpoint_of(options.address);
  if (!endpoint.ok()) return endpoint.error();
  auto secrets = WebSecrets::make();
  if (!secrets.ok()) return secrets.error();
  auto state = std::make_unique<State>(options, collector);
  COLLECT_TRY(listen_on(state->acceptor, *endpoint, options.address));
  std::error_code error;
  const tcp::endpoint bound = state->acceptor.local_endpoint(error);
  if (error) return errno_error(error.value(), "web address " + options.address);
  state->access.emplace(std::move(*secrets), bound.address().to_string(), bound.port());
  state->url = state->access->url();
  state->routes.emplace(*state->access, collector, state->feed, state->pages, options.symbols);
  state->server.emplace(Connection::Server{
      *state->routes, state->feed, state->mailbox, [state = state.get()](Connection& closed) {
        std::erase_if(state->connections, [&](const auto& one) { return one.get() == &closed; });
      }});
  state->accept();
  state->thread = std::thread([state = state.get()] { state->io.run(); });
  (void)pthread_setname_np(state->thread.native_handle(), "web");
  return std::unique_ptr<WebServer>(new WebServer(std::move(state)));
}

WebServer::WebServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

WebServer::~WebServer() {
  stop();
}

const std::string& WebServer::url() const {
  return state_->url;
}

void WebServer::stop() {
  if (!state_->thread.joinable()) return;
  asio::post(state_->io, [state = state_.get()] {
    std::error_code ignored;
    state->acceptor.close(ignored);
    state->pause.cancel();
    const auto connections = state->connections;
    for (const auto& connection : connections) connection->close();
    state->io.stop();
  });
  state_->thread.join();
  state_->mailbox->close();
}

void WebServer::State::accept() {
  acceptor.async_accept([this](const std::error_code& error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) decide(std::move(socket));
    const bool is_exhausted =
        error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
        error == asio::error::no_memory || error == std::errc::too_many_files_open_in_system;
    if (!is_exhausted) {
      accept();
      return;
    }
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](const std::error_code& cancelled) {
      if (!cancelled) accept();
    });
  });
}

void WebServer::State::decide(tcp::socket socket) {
  const auto peer = peers.identify(socket.native_handle());
  if (!peer.ok()) {
    log_refusal("a connection", peer.error().message);
    return;
  }
  // The address is loopback: what comes from elsewhere never gets here.
  const std::string why = peer->is_local ? local.refusal(*peer) : "it is not of this machine";
  if (!why.empty() && !principal::ended_without_bytes(socket.native_handle())) {
    log_refusal(describe(peer->principal), why);
  }
  add(std::move(socket), peer->principal, why);
}

// What a browser keeps open for later goes first; a newcomer is not refused for it.
bool WebServer::State::make_room(const principal::Principal& principal, bool is_refused) {
  const auto is_of = [&](const auto& one) { return one->principal() == principal; };
  const auto refused = std::count_if(connections.begin(), connections.end(),
                                     [](const auto& one) { return one->is_refused(); });
  if (is_refused && static_cast<size_t>(refused) >= kMaxRefusedConnections) return false;
  const auto own = std::count_if(connections.begin(), connections.end(), is_of);
  const bool has_too_many = static_cast<size_t>(own) >= kMaxConnectionsPerPrincipal;
  if (!has_too_many && connections.size() < kMaxConnections) return true;
  if (is_refused) return false;
  const auto idle = std::find_if(connections.begin(), connections.end(), [&](const auto& one) {
    return one->is_idle() && (!has_too_many || is_of(one));
  });
  if (idle == connections.end()) return false;
  const std::shared_ptr<Connection> closing = *idle;  // it removes itself
  closing->close();
  return true;
}

void WebServer::State::add(tcp::socket socket, principal::Principal principal,
                           std::string refusal) {
  if (!make_room(principal, !refusal.empty())) {
    if (refusal.empty()) log_refusal(describe(principal), "too many connections");
    return;
  }
  std::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  connections.push_back(std::make_shared<Connection>(*server, std::move(socket),
                                                     std::move(principal), std::move(refusal)));
  connections.back()->start();
}

void WebServer::State::log_refusal(const std::string& who, const std::string& why) {
  const uint64_t count = refusals.count(std::chrono::steady_clock::now());
  if (count == 0) return;
  spdlog::warn("web: refused {}{}: {}", who,
               count == 1 ? "" : " (" + std::to_string(count) + " since the last such line)", why);
}

}  // namespace collect::web
