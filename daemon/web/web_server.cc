#include "daemon/web/web_server.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <list>
#include <thread>
#include <utility>

#include "daemon/control/relay/refusal_log.h"
#include "daemon/principal/peer_user.h"
#include "daemon/web/connection.h"
#include "daemon/web/limits.h"
#include "daemon/web/routes.h"
#include "daemon/web/viewer_folder.h"
#include "formats/core/address.h"
#include "formats/core/threads.h"

namespace collect::web {
namespace {

using asio::ip::tcp;

constexpr char kPerfettoAddress[] = "https://ui.perfetto.dev";

Error not_served(const std::string& address, const std::string& why) {
  return {Code::kInvalidArgument, fmt::format("web address {}: {}", address, why)};
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
    return Error{Code::kAlreadyExists, fmt::format("web address {} is in use", text)};
  }
  if (error) return errno_error(error.value(), "web address " + text);
  return {};
}

std::string describe(const principal::Principal& principal) {
  return principal.kind == principal::Principal::Kind::kUid ? "user " + principal.id
                                                            : "someone on this machine";
}

}  // namespace

struct WebServer::State {
  // An address with what is served there.
  struct Listener {
    explicit Listener(asio::io_context& io) : acceptor(io), pause(io) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    std::optional<WebAccess> access;
    std::optional<Connection::Server> server;
  };

  State(const WebOptions& options, std::unique_ptr<WebContent> shown)
      : local(options.local),
        warn(options.warn),
        content(std::move(shown)),
        feed(io, *content),
        pages(options.page_program) {}

  Status open(Listener& listener, tcp::endpoint endpoint, const std::string& text);
  Status open_viewer(const std::string& folder, const tcp::endpoint& page);
  Connection::Server server_of(
      std::function<void(const HttpRequest&, PageMaker::Cancelled, AnswerTo)> serve);
  void accept(Listener& listener);
  void decide(Listener& listener, tcp::socket socket);
  bool make_room(const principal::Principal& principal, bool is_refused);
  void add(Listener& listener, tcp::socket socket, principal::Principal principal,
           std::string refusal);
  void log_refusal(const std::string& who, const std::string& why);

  const principal::LocalAccess local;
  const std::function<void(const std::string&)> warn;
  const std::unique_ptr<WebContent> content;
  asio::io_context io;
  Listener page{io};
  Listener viewer{io};  // open when there is a folder
  std::optional<ViewerFolder> viewer_folder;
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(io);
  LiveFeed feed;
  PageMaker pages;
  std::optional<Routes> routes;
  std::list<std::shared_ptr<Connection>> connections;  // the oldest first
  principal::PeerLookup peers;
  control::RefusalLog refusals{kRefusalLogPeriod};
  std::string url;
  std::jthread thread;
};

Result<std::unique_ptr<WebServer>> WebServer::start(const WebOptions& options,
                                                    std::unique_ptr<WebContent> content) {
  const auto endpoint = endpoint_of(options.address);
  if (!endpoint.ok()) return endpoint.error();
  auto state = std::make_unique<State>(options, std::move(content));
  COLLECT_TRY(state->open(state->page, *endpoint, options.address));
  std::string viewer = kPerfettoAddress;
  if (!options.viewer_folder.empty()) {
    COLLECT_TRY(state->open_viewer(options.viewer_folder, *endpoint));
    viewer = state->viewer.access->address();
  }
  state->url = state->page.access->url();
  state->routes.emplace(*state->page.access, *state->content, state->feed, state->pages,
                        options.symbols, std::move(viewer));
  state->page.server.emplace(
      state->server_of([routes = &*state->routes](const HttpRequest& request,
                                                  PageMaker::Cancelled cancelled, AnswerTo answer) {
        routes->serve(request, std::move(cancelled), std::move(answer));
      }));
  state->accept(state->page);
  if (state->viewer_folder) state->accept(state->viewer);
  auto started = start_thread("web", [state = state.get()] { state->io.run(); });
  if (!started.ok()) return started.error();
  state->thread = std::move(*started);
  return std::unique_ptr<WebServer>(new WebServer(std::move(state)));
}

WebServer::WebServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

WebServer::~WebServer() {
  stop();
}

const std::string& WebServer::url() const {
  return state_->url;
}

bool WebServer::is_in_use() const {
  return state_->feed.streams() != 0 || state_->pages.has_any();
}

void WebServer::stop() {
  if (!state_->thread.joinable()) return;
  asio::post(state_->io, [state = state_.get()] {
    std::error_code ignored;
    for (State::Listener* listener : {&state->page, &state->viewer}) {
      listener->acceptor.close(ignored);
      listener->pause.cancel();
    }
    const auto connections = state->connections;
    for (const auto& connection : connections) connection->close();
    state->io.stop();
  });
  state_->thread.join();
  state_->mailbox->close();
}

Status WebServer::State::open(Listener& listener, tcp::endpoint endpoint, const std::string& text) {
  auto secrets = WebSecrets::make();
  if (!secrets.ok()) return secrets.error();
  COLLECT_TRY(listen_on(listener.acceptor, endpoint, text));
  std::error_code error;
  endpoint = listener.acceptor.local_endpoint(error);
  if (error) return errno_error(error.value(), "web address " + text);
  listener.access.emplace(std::move(*secrets), endpoint.address().to_string(), endpoint.port());
  return {};
}

// At any port beside the page's.
Status WebServer::State::open_viewer(const std::string& folder,
                                     const tcp::endpoint& page_endpoint) {
  auto opened = ViewerFolder::open(folder);
  if (!opened.ok()) return opened.error();
  viewer_folder.emplace(std::move(*opened));
  COLLECT_TRY(open(viewer, {page_endpoint.address(), 0}, "of " + folder));
  viewer.server.emplace(server_of(
      [this](const HttpRequest& request, const PageMaker::Cancelled&, const AnswerTo& answer) {
        auto refused = viewer.access->refusal(request);
        answer(refused ? std::move(*refused) : viewer_folder->serve(request));
      }));
  return {};
}

Connection::Server WebServer::State::server_of(
    std::function<void(const HttpRequest&, PageMaker::Cancelled, AnswerTo)> serve) {
  return {std::move(serve), feed, mailbox, [this](Connection& closed) {
            std::erase_if(connections, [&](const auto& one) { return one.get() == &closed; });
          }};
}

void WebServer::State::accept(Listener& listener) {
  listener.acceptor.async_accept(
      [this, &listener](const std::error_code& error, tcp::socket socket) {
        if (!listener.acceptor.is_open()) return;
        if (!error) decide(listener, std::move(socket));
        const bool is_exhausted =
            error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
            error == asio::error::no_memory || error == std::errc::too_many_files_open_in_system;
        if (!is_exhausted) {
          accept(listener);
          return;
        }
        listener.pause.expires_after(kAcceptPause);
        listener.pause.async_wait([this, &listener](const std::error_code& cancelled) {
          if (!cancelled) accept(listener);
        });
      });
}

void WebServer::State::decide(Listener& listener, tcp::socket socket) {
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
  add(listener, std::move(socket), peer->principal, why);
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

void WebServer::State::add(Listener& listener, tcp::socket socket, principal::Principal principal,
                           std::string refusal) {
  if (!make_room(principal, !refusal.empty())) {
    if (refusal.empty()) log_refusal(describe(principal), "too many connections");
    return;
  }
  std::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  connections.push_back(std::make_shared<Connection>(*listener.server, std::move(socket),
                                                     std::move(principal), std::move(refusal)));
  connections.back()->start();
}

void WebServer::State::log_refusal(const std::string& who, const std::string& why) {
  const uint64_t count = refusals.count(std::chrono::steady_clock::now());
  if (count == 0 || !warn) return;
  warn(fmt::format("web: refused {}{}: {}", who,
                   count == 1 ? "" : fmt::format(" ({} since the last such line)", count), why));
}

}  // namespace collect::web
