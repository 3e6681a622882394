#include "tests/fakes/chaos_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace collect::fakes {
namespace {

constexpr int kPaceMs = 1;
constexpr size_t kBufferBytes = 64 * 1024;
// What a slow link may be behind its rate, and then catch up with: the machine is busy.
constexpr std::chrono::milliseconds kMostOwed{100};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

struct ChaosProxy::Relay {
  std::array<int, 2> sockets{-1, -1};                     // who connected, and whom we connected to
  std::array<std::array<char, kBufferBytes>, 2> buffers;  // read from [i], owed to the other
  std::array<size_t, 2> begin{};
  std::array<size_t, 2> end{};
  bool abandoned = false;

  bool closed() const { return sockets[0] < 0; }
};

ChaosProxy::ChaosProxy(uint16_t target) : target_(target) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 128) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

ChaosProxy::~ChaosProxy() {
  over_ = true;
  thread_.join();
  for (const auto& relay : relays_) close_relay(*relay, false);
  close(listener_);
}

void ChaosProxy::close_relay(Relay& relay, bool reset) {
  for (int& socket : relay.sockets) {
    if (socket < 0) continue;
    if (reset) {
      const linger now{1, 0};
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    close(socket);
    socket = -1;
  }
}

void ChaosProxy::cut_all(bool reset) {
  const std::lock_guard lock(mutex_);
  for (const auto& relay : relays_) {
    if (relay->closed()) continue;
    close_relay(*relay, reset);
    ++cuts_;
  }
}

void ChaosProxy::cut_one(uint64_t which, bool reset) {
  const std::lock_guard lock(mutex_);
  if (relays_.empty()) return;
  Relay& relay = *relays_[which % relays_.size()];
  if (relay.closed()) return;
  close_relay(relay, reset);
  ++cuts_;
}

void ChaosProxy::hold(bool held) {
  held_ = held;
}

void ChaosProxy::abandon_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& relay : relays_) {
    if (!relay->closed() && !relay->abandoned) ++cuts_;
    relay->abandoned = true;
  }
}

void ChaosProxy::trickle(size_t bytes) {
  trickle_ = bytes;
}

void ChaosProxy::limit_rate(uint64_t bytes_per_second) {
  rate_ = bytes_per_second;
}

void ChaosProxy::fill_allowance() {
  const auto now = std::chrono::steady_clock::now();
  const auto passed = std::min<std::chrono::nanoseconds>(now - allowed_at_, kMostOwed);
  allowed_at_ = now;
  const uint64_t rate = rate_;
  const auto most = static_cast<double>(rate) * std::chrono::duration<double>(kMostOwed).count();
  for (uint64_t& bytes : allowance_) {
    const double more = static_cast<double>(rate) * std::chrono::duration<double>(passed).count();
    bytes = rate == 0 ? UINT64_MAX
                      : static_cast<uint64_t>(
                            std::min(std::min(static_cast<double>(bytes), most) + more, most));
  }
}

size_t ChaosProxy::connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(relays_.begin(), relays_.end(),
                                           [](const auto& relay) { return !relay->closed(); }));
}

void ChaosProxy::accept_one() {
  const int from = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (from < 0) return;
  const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(target_);
  if (connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(from);
    close(to);
    return;
  }
  fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_NONBLOCK);
  const int one = 1;
  setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  auto relay = std::make_unique<Relay>();
  relay->sockets = {from, to};
  relays_.push_back(std::move(relay));
}

// What came from one side goes to the other; the end of either is the end of both. How much went.
size_t ChaosProxy::move(Relay& relay, int direction) {
  const auto from = static_cast<size_t>(direction);
  const int source = relay.sockets[from];
  const int sink = relay.sockets[1 - from];
  auto& buffer = relay.buffers[from];
  if (relay.begin[from] == relay.end[from]) {
    size_t limit = trickle_ == 0 ? buffer.size() : std::min(trickle_.load(), buffer.size());
    limit = std::min<uint64_t>(limit, allowance_[from]);
    if (limit == 0) return 0;
    const ssize_t got = recv(source, buffer.data(), limit, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      close_relay(relay, got < 0);
      return 0;
    }
    relay.begin[from] = 0;
    relay.end[from] = got > 0 ? static_cast<size_t>(got) : 0;
    allowance_[from] -= relay.end[from];
    if (from == 0) carried_bytes_ += relay.end[from];
  }
  if (relay.begin[from] == relay.end[from]) return 0;
  const ssize_t put = send(sink, buffer.data() + relay.begin[from],
                           relay.end[from] - relay.begin[from], MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    close_relay(relay, true);
    return 0;
  }
  if (put > 0) relay.begin[from] += static_cast<size_t>(put);
  return put > 0 ? static_cast<size_t>(put) : 0;
}

void ChaosProxy::run() {
  std::vector<pollfd> polled;
  while (!over_) {
    polled.assign(1, {listener_, POLLIN, 0});
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(relays_, [](const auto& relay) { return relay->closed(); });
      const bool moving = !held_ && !steps();
      for (const auto& relay : relays_) {
        for (size_t side = 0; side < 2 && moving && !relay->abandoned; ++side) {
          const bool owes = relay->begin[1 - side] != relay->end[1 - side];
          const bool room = relay->begin[side] == relay->end[side];
          polled.push_back({relay->sockets[side],
                            static_cast<short>((room ? POLLIN : 0) | (owes ? POLLOUT : 0)), 0});
        }
      }
    }
    // Held or trickling, the relays are looked at in steps and not when they have something.
    (void)poll(polled.data(), polled.size(), kPaceMs * (steps() ? 1 : 5));
    if (held_) continue;
    const std::lock_guard lock(mutex_);
    if ((polled[0].revents & POLLIN) != 0) accept_one();
    fill_allowance();
    for (const auto& relay : relays_) {
      for (int direction = 0; direction < 2; ++direction) {
        // A slow link moves more in a step than one buffer; a trickle does not.
        size_t moved = 1;
        while (moved != 0 && !relay->closed() && !relay->abandoned) {
          moved = move(*relay, direction);
          if (rate_ == 0) break;
        }
      }
    }
  }
}

}  // namespace collect::fakes
