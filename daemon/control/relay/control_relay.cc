#include "daemon/control/relay/control_relay.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace collect::control {
namespace {

using principal::Principal;

constexpr size_t kEventsAtOnce = 64;
constexpr int kIdleMs = 60'000;
constexpr size_t kMaxRates = 2 * kMaxControlConnections;

enum class Moved { kSome, kNothing, kEnd, kFailed };

// `count` stays as it is where nothing came.
Moved receive(int fd, MutableBytes room, size_t& count) {
  const ssize_t got = ::recv(fd, room.data(), room.size(), MSG_DONTWAIT);
  if (got > 0) {
    count = static_cast<size_t>(got);
    return Moved::kSome;
  }
  if (got == 0) return Moved::kEnd;
  return errno == EAGAIN ? Moved::kNothing : Moved::kFailed;
}

// What was not taken stays in `pending`. False: the other side is gone.
bool send_some(int fd, const uint8_t* bytes, size_t count, std::string& pending) {
  while (count != 0) {
    const ssize_t sent = ::send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) return false;
      break;
    }
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  pending.append(reinterpret_cast<const char*>(bytes), count);
  return true;
}

bool send_pending(int fd, std::string& pending) {
  const std::string bytes = std::exchange(pending, {});
  return send_some(fd, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), pending);
}

// Gives our end of the pair a name of its own, by which gRPC knows its peer.
std::string name_socket(int fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t bytes = sizeof(sa_family_t);  // no name: the kernel chooses an abstract one
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), bytes) != 0) return {};
  bytes = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {};
  const size_t length = bytes - offsetof(sockaddr_un, sun_path) - 1;  // behind the zero in front
  return "unix-abstract:" + std::string(address.sun_path + 1, length);
}

}  // namespace

std::string describe(const Principal& principal) {
  switch (principal.kind) {
    case Principal::Kind::kUid:
      return "user " + principal.id;
    case Principal::Kind::kCertificate:
      return "certificate " + principal.id.substr(0, 16);
    case Principal::Kind::kAddress:
      return principal.id;
    case Principal::Kind::kUnknown:
      break;
  }
  return "an unknown user";
}

CallRate fresh_rate(bool is_tls, bool is_own, CallRate::Time now) {
  if (is_tls) {
    return is_own ? CallRate(kOwnTlsBytesPerSecond, kOwnTlsBytesAtOnce, now)
                  : CallRate(kTlsBytesPerSecond, kTlsBytesAtOnce, now);
  }
  return is_own ? CallRate(kOwnCallsPerSecond, kOwnCallsAtOnce, now)
                : CallRate(kCallsPerSecond, kCallsAtOnce, now);
}

ControlRelay::~ControlRelay() {
  while (!connections_.empty()) end(connections_.begin());
  if (epoll_ >= 0) ::close(epoll_);
}

Status ControlRelay::open() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  return epoll_ >= 0 ? Status{} : errno_error(errno, "cannot listen for the control plane");
}

bool ControlRelay::has_room(const Principal& principal, std::string& why) const {
  if (connections_.size() - refused_ >= kMaxControlConnections) {
    why = fmt::format("more than {} connections", kMaxControlConnections);
    return false;
  }
  const bool is_address = principal.kind == Principal::Kind::kAddress;
  const size_t limit =
      is_address ? kMaxControlConnectionsPerAddress : kMaxControlConnectionsPerPrincipal;
  const auto same = std::count_if(connections_.begin(), connections_.end(), [&](const auto& known) {
    return known.second->server >= 0 && known.second->principal == principal;
  });
  if (static_cast<size_t>(same) < limit) return true;
  why = fmt::format("more than {} connections of one {}", limit, is_address ? "address" : "user");
  return false;
}

Status ControlRelay::admit(int client, const Principal& principal, const Take& take) {
  auto connection =
      std::make_unique<Connection>(fresh_rate(is_tls_, true, std::chrono::steady_clock::now()));
  connection->client = client;
  connection->principal = principal;
  std::string why;
  if (!has_room(principal, why)) {
    ::close(client);
    return Error{Code::kLimit, why};
  }
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
    const int error = errno;
    ::close(client);
    return errno_error(error, "no socket pair");
  }
  connection->server = pair[0];
  connection->grpc_peer = name_socket(pair[0]);
  if (!is_tls_) connection->meter = std::make_unique<Http2Meter>();
  add(std::move(connection));
  take(pair[1]);
  return {};
}

void ControlRelay::refuse(int client, const std::string& reason) {
  if (is_tls_ || refused_ >= kMaxRefusedConnections) {
    ::close(client);
    return;
  }
  auto connection =
      std::make_unique<Connection>(fresh_rate(is_tls_, true, std::chrono::steady_clock::now()));
  connection->client = client;
  connection->refusal = std::make_unique<RefusalAnswer>(reason);
  connection->down.pending = RefusalAnswer::greeting();
  connection->deadline = std::chrono::steady_clock::now() + kRefusedDeadline;
  ++refused_;
  add(std::move(connection));
}

void ControlRelay::add(std::unique_ptr<Connection> connection) {
  const uint64_t id = next_id_++;
  const std::lock_guard lock(mutex_);
  Connection& added = *connections_.emplace(id, std::move(connection)).first->second;
  watch(id, added, std::chrono::steady_clock::now());
}

void ControlRelay::end(Connections::iterator at) {
  const Connection& connection = *at->second;
  if (connection.refusal) --refused_;
  ::close(connection.client);
  if (connection.server >= 0) ::close(connection.server);
  const std::lock_guard lock(mutex_);
  connections_.erase(at);
}

void ControlRelay::run() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  const Time now = std::chrono::steady_clock::now();
  std::vector<uint64_t> ready;
  // A copy: the field is not aligned.
  for (int i = 0; i < count; ++i) {
    ready.push_back(uint64_t{events[static_cast<size_t>(i)].data.u64});
  }
  for (const auto& [id, connection] : connections_) {
    const bool is_free_again =
        connection->paused_until != Time::min() && connection->paused_until <= now;
    if (is_free_again || connection->deadline <= now) ready.push_back(id);
  }
  for (const uint64_t id : ready) {
    const auto at = connections_.find(id);
    if (at == connections_.end()) continue;
    if (at->second->deadline <= now || !serve(*at->second, now)) {
      end(at);
    } else {
      watch(id, *at->second, now);
    }
  }
}

int ControlRelay::wait_ms() {
  Time next = Time::max();
  for (const auto& [id, connection] : connections_) {
    next = std::min(next, connection->deadline);
    if (connection->paused_until != Time::min()) next = std::min(next, connection->paused_until);
  }
  if (next == Time::max()) return kIdleMs;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      next - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, kIdleMs));
}

bool ControlRelay::serve(Connection& connection, Time now) {
  if (connection.refusal) return answer_refused(connection);
  return move_up(connection, now) && move_down(connection, now);
}

bool ControlRelay::move_up(Connection& connection, Time now) {
  Flow& flow = connection.up;
  for (int turn = 0; turn < kRelayTurns; ++turn) {
    if (!flow.pending.empty() && !send_pending(connection.server, flow.pending)) return false;
    if (!flow.pending.empty()) return true;
    if (flow.at_end) {
      ::shutdown(connection.server, SHUT_WR);  // again it does nothing
      return true;
    }
    if (is_paused(connection, now)) return true;
    size_t count = 0;
    const Moved moved =
        receive(connection.client, MutableBytes(scratch_).first(kRequestBytes), count);
    if (moved == Moved::kNothing) return true;
    if (moved == Moved::kFailed) return false;
    flow.at_end = moved == Moved::kEnd;
    if (!charge(connection, Bytes(scratch_.data(), count), now)) return false;
    if (!send_some(connection.server, scratch_.data(), count, flow.pending)) return false;
  }
  return true;
}

// gRPC closes a connection as a whole: what it wrote before goes out, and that is all.
bool ControlRelay::move_down(Connection& connection, Time now) {
  Flow& flow = connection.down;
  for (int turn = 0; turn < kRelayTurns; ++turn) {
    if (!flow.pending.empty() && !send_pending(connection.client, flow.pending)) return false;
    if (!flow.pending.empty()) return true;
    size_t count = 0;
    const Moved moved = receive(connection.server, scratch_, count);
    if (moved == Moved::kNothing) return true;
    if (moved != Moved::kSome) return false;
    if (connection.meter) {
      connection.meter->from_server(Bytes(scratch_.data(), count));
    } else {
      rate_of(connection.principal, now).give(kTlsBytesPerByteSent * static_cast<double>(count));
    }
    if (!send_some(connection.client, scratch_.data(), count, flow.pending)) return false;
  }
  return true;
}

bool ControlRelay::answer_refused(Connection& connection) {
  size_t count = 0;
  const Moved moved =
      receive(connection.client, MutableBytes(scratch_).first(kRequestBytes), count);
  if (moved == Moved::kEnd || moved == Moved::kFailed) return false;
  std::string& pending = connection.down.pending;  // answers have a limit of their own
  const bool goes_on = connection.refusal->answer(Bytes(scratch_.data(), count), pending);
  return send_pending(connection.client, pending) && goes_on;
}

// Whether it has used up its own allowance, and its principal theirs: then nothing is read until
// there is one again.
bool ControlRelay::is_paused(Connection& connection, Time now) {
  const Time free_at =
      std::min(connection.own.free_at(now), rate_of(connection.principal, now).free_at(now));
  connection.paused_until = free_at > now ? free_at : Time::min();
  return free_at > now;
}

// False: the connection has to end.
bool ControlRelay::charge(Connection& connection, Bytes bytes, Time now) {
  double amount = static_cast<double>(bytes.size());
  if (connection.meter) {
    uint32_t costs = 0;
    const std::string fault = connection.meter->from_client(bytes, costs);
    if (!fault.empty()) {
      spdlog::warn("control: closed a connection of {}: {}", describe(connection.principal), fault);
      return false;
    }
    amount = costs;
  }
  connection.own.take(amount, now);
  rate_of(connection.principal, now).take(amount, now);
  return true;
}

CallRate& ControlRelay::rate_of(const Principal& principal, Time now) {
  const auto known = rates_.find(principal);
  if (known != rates_.end()) return known->second;
  // There are never more than kMaxControlConnections who are connected.
  if (rates_.size() >= kMaxRates) {
    std::erase_if(rates_, [this](const auto& entry) {
      return std::none_of(connections_.begin(), connections_.end(), [&](const auto& connection) {
        return connection.second->principal == entry.first;
      });
    });
  }
  return rates_.emplace(principal, fresh_rate(is_tls_, false, now)).first->second;
}

void ControlRelay::watch(uint64_t id, Connection& connection, Time now) {
  const bool reads_client =
      connection.refusal ||
      (connection.up.pending.empty() && !connection.up.at_end && connection.paused_until <= now);
  const uint32_t in = EPOLLIN;
  const uint32_t out = EPOLLOUT;
  watch_one(connection.client, id,
            (reads_client ? in : 0) | (connection.down.pending.empty() ? 0 : out),
            connection.watched_client);
  if (connection.server < 0) return;
  watch_one(connection.server, id,
            (connection.down.pending.empty() ? in : 0) | (connection.up.pending.empty() ? 0 : out),
            connection.watched_server);
}

// A descriptor of which nothing is wanted is not watched at all: its end would be reported again
// and again.
void ControlRelay::watch_one(int fd, uint64_t data, uint32_t wanted, uint32_t& watched) {
  if (wanted == watched) return;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = data;
  const int change = wanted == 0 ? EPOLL_CTL_DEL : watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_, change, fd, &event) == 0) watched = wanted;
}

std::string ControlRelay::connected() {
  std::map<std::string, size_t> counts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, connection] : connections_) {
      if (!connection->refusal) ++counts[describe(connection->principal)];
    }
  }
  std::vector<std::pair<size_t, std::string>> most;
  for (const auto& [who, count] : counts) most.emplace_back(count, who);
  std::sort(most.rbegin(), most.rend());
  std::string text;
  for (size_t i = 0; i < most.size() && i < kNamedPrincipals; ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", most[i].second, most[i].first);
  }
  if (most.size() > kNamedPrincipals) {
    text += fmt::format(" and {} more", most.size() - kNamedPrincipals);
  }
  return text.empty() ? "no client" : text;
}

Principal ControlRelay::principal_of(const std::string& grpc_peer) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, connection] : connections_) {
    if (!grpc_peer.empty() && connection->grpc_peer == grpc_peer) return connection->principal;
  }
  return {};
}

}  // namespace collect::control
