#include "daemon/ingest/acceptor.h"

#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/ingest/link/limits.h"
#include "formats/core/threads.h"

namespace collect::ingest {
namespace {

constexpr milliseconds kAcceptPause{100};  // out of descriptors: others must end first

// A Unix socket whose owner is gone leaves its file behind; nothing listens there any more.
void remove_stale_socket(const Endpoint& endpoint, const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  asio::io_context io;
  Socket probe(io);
  std::error_code error;
  probe.connect(endpoint, error);
  if (error == asio::error::connection_refused) ::unlink(path.c_str());
}

}  // namespace

Acceptor::Acceptor(IngestCore& core, asio::io_context& io, OnHello on_hello, OnFeed on_feed)
    : core_(core),
      io_(io),
      on_hello_(std::move(on_hello)),
      on_feed_(std::move(on_feed)),
      listener_(io),
      pause_(io) {}

Acceptor::~Acceptor() {
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

Status Acceptor::open(const std::string& text) {
  Result<Address> address = parse_address(text);
  if (!address.ok()) return address.error();
  Result<Endpoint> endpoint = resolve_endpoint(*address);
  if (!endpoint.ok()) return endpoint.error();
  if (!is_local(*endpoint)) COLLECT_TRY(core_.guard(text));
  is_tcp_ = address->kind == Address::Kind::kTcp;
  const bool is_unix = address->kind == Address::Kind::kUnix;
  if (is_unix) remove_stale_socket(*endpoint, address->host);
  const auto failed = [&text](const std::error_code& error) -> Status {
    if (error == asio::error::address_in_use) {
      return Error{
          Code::kAlreadyExists,
          fmt::format("ingest address {} is in use; another collectord may be running", text)};
    }
    return errno_error(error.value(), "ingest address " + text);
  };
  std::error_code error;
  listener_.open(endpoint->protocol(), error);
  if (error) return failed(error);
  prepare_socket(listener_.native_handle());
  if (!is_unix) listener_.set_option(asio::socket_base::reuse_address(true), error);
  listener_.bind(*endpoint, error);
  if (error) return failed(error);
  if (is_unix) {
    unix_path_ = address->host;
    COLLECT_TRY(core_.options.local_access.open_socket_file(unix_path_));
  }
  listener_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failed(error);
  address_ = endpoint_text(listener_.local_endpoint(error));
  return error ? failed(error) : Status{};
}

Status Acceptor::take_over(int listening) {
  sockaddr_storage raw{};
  socklen_t bytes = sizeof raw;
  if (::getsockname(listening, reinterpret_cast<sockaddr*>(&raw), &bytes) != 0) {
    const int error = errno;
    ::close(listening);
    return errno_error(error, "inherited ingest socket");
  }
  is_tcp_ = raw.ss_family != AF_UNIX;
  const Endpoint bound(&raw, bytes, is_tcp_ ? IPPROTO_TCP : 0);
  std::error_code error;
  listener_.assign(bound.protocol(), listening, error);
  if (error) {
    ::close(listening);
    return errno_error(error.value(), "inherited ingest socket");
  }
  address_ = endpoint_text(bound);
  prepare_socket(listening);
  return is_local(bound) ? Status{} : core_.guard(address_);
}

void Acceptor::start() {
  accept_next();
}

void Acceptor::stop() {
  std::error_code ignored;
  listener_.close(ignored);
  pause_.cancel();
}

void Acceptor::accept_next() {
  listener_.async_accept(
      io_, [self = shared_from_this()](const std::error_code& error, Socket socket) {
        if (error == asio::error::operation_aborted || !self->listener_.is_open()) return;
        if (!error) {
          const Status done = contain([&] { self->on_accepted(std::move(socket)); });
          if (!done.ok()) self->core_.refused("a connection", done.error().message);
          self->accept_next();
          return;
        }
        self->on_accept_error(error);
        self->pause_.expires_after(kAcceptPause);
        self->pause_.async_wait([self](const std::error_code& cancelled) {
          if (!cancelled) self->accept_next();
        });
      });
}

// Out of descriptors: pending connections are asked to come again, instead of waiting here unseen.
void Acceptor::on_accept_error(const std::error_code& error) {
  uint32_t turned_away = 0;
  if (errno_error(error.value(), "").code == Code::kExhausted) {
    turned_away = spare_.turn_away(listener_.native_handle(), !(is_tcp_ && core_.tls()));
    core_.counters.connections_refused.fetch_add(turned_away, std::memory_order_relaxed);
  }
  const std::string line = core_.refusal_lines.admit(
      fmt::format("ingest: accept: {}; {} turned away", error.message(), turned_away));
  if (!line.empty()) spdlog::warn("{}", line);
}

void Acceptor::on_accepted(Socket socket) {
  core_.counters.connections_accepted.fetch_add(1, std::memory_order_relaxed);
  prepare_socket(socket.native_handle());
  std::string peer = peer_text(socket);
  const std::string origin = origin_of(socket);
  const auto tls = is_tcp_ ? core_.tls() : nullptr;
  TlsSession session = tls ? tls->accept_on(socket.native_handle()) : nullptr;
  if (tls && !session) {
    core_.refused(peer, "no memory for TLS");
    return;
  }
  const Result<principal::Peer> user = peers_.identify(socket.native_handle());
  auto link = std::make_shared<Link>(std::move(socket), std::move(session), std::move(peer));
  if (!user.ok()) {
    turn_away(*link, wire::REFUSE_RESOURCES, user.error().message, true);
    return;
  }
  // Who is kept out by the user alone may show that it was let in.
  const std::string why = user_refusal(*user, tls.get());
  const bool is_guest = !why.empty() && is_tcp_ && !core_.options.guest_token.empty();
  if (!why.empty() && !is_guest) {
    if (principal::ended_without_bytes(link->socket().native_handle())) return;
    turn_away(*link, wire::REFUSE_PRINCIPAL, why, false);
    return;
  }
  link->set_principal(user->principal);
  // Its own share first: who has used it up takes no one else's place.
  if (!origin.empty()) {
    auto place = origins_->enter(origin, core_.options.connections_per_address);
    if (!place) {
      turn_away(*link, wire::REFUSE_LIMIT,
                fmt::format("more than {} connections of one address (max_connections_per_address)",
                            core_.options.connections_per_address),
                true);
      return;
    }
    link->hold(std::move(place));
  }
  const Status admitted = admit(*link);
  if (!admitted.ok()) {
    turn_away(*link, wire::REFUSE_LIMIT, admitted.error().message, true);
    return;
  }
  const principal::Principal owner = link->principal();
  const auto reader = HandshakeReader::wait(
      core_, std::move(link), on_hello_, [](const std::string&, wire::RefuseCode) {}, on_feed_,
      why);
  const auto waits = reader.lock();
  if (!waits) return;
  waits->hold(pending_->admit(
      origin,
      [reader](const std::string& reason) {
        if (const auto late = reader.lock()) late->evict(reason);
      },
      owner));
}

// What is refused is refused to the principal that has too much: its own pending connections give
// way first, and those of others only when it has next to nothing. The descriptor is not asked for:
// connections have at most half of all, and files of sessions are closed for the rest.
Status Acceptor::admit(Link& link) {
  using principal::Resource;
  const auto account = core_.budget.account(link.principal());
  const auto leases = std::make_shared<std::pair<principal::Lease, principal::Lease>>(
      principal::Lease(account, Resource::kConnections),
      principal::Lease(account, Resource::kDescriptors));
  auto& [connection, descriptor] = *leases;
  Status taken = connection.grow(1);
  if (!taken.ok() && pending_->evict_oldest_of(link.principal(), taken.error().message)) {
    taken = connection.grow(1);
  }
  if (!taken.ok() && account->used(Resource::kConnections) < kLeastConnections) {
    pending_->evict_oldest(taken.error().message);
    taken = connection.grow(1);
  }
  if (!taken.ok()) return taken;
  descriptor.set(1);
  link.hold(leases);
  return {};
}

// Over TCP a token or a client certificate, where one is asked for, is proof enough: it is on the
// other addresses of this machine too. A Unix socket asks for the user in any case.
std::string Acceptor::user_refusal(const principal::Peer& peer, const TlsContext* tls) const {
  const bool asks_for_proof =
      is_tcp_ && (!core_.token().empty() || (tls != nullptr && tls->asks_for_certificate()));
  if (!peer.is_local || asks_for_proof) return {};
  return core_.options.local_access.refusal(peer);
}

// With the reason, as far as there is room to wait until it was read.
void Acceptor::turn_away(Link& link, wire::RefuseCode code, const std::string& reason, bool retry) {
  core_.refused(link.peer(), reason);
  if (lingering_->fetch_add(1) >= kMaxLingering) {
    lingering_->fetch_sub(1);
    return;  // it closes with its last owner, our caller
  }
  link.hold(std::shared_ptr<void>(nullptr, [count = lingering_](void*) { count->fetch_sub(1); }));
  link.refuse(code, reason, retry);
}

}  // namespace collect::ingest
