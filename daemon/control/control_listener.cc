#include "daemon/control/control_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

namespace collect::control {
namespace {

constexpr int kAcceptPauseMs = 100;  // out of descriptors: others must end first
constexpr std::chrono::seconds kRefusalLogPeriod{10};

ino_t inode_of(int handle) {
  struct stat info{};
  return ::fstat(handle, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

std::string v4_text(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

bool is_loopback(const in_addr& address) {
  return (ntohl(address.s_addr) >> 24) == 127;
}

// The address that is charged, and whether it is charged at all.
std::pair<std::string, bool> origin_of(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_UNIX) return {"unix", false};
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof v4);
    return {v4_text(v4.sin_addr), !is_loopback(v4.sin_addr)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &peer, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr v4{};
    std::memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
    return {v4_text(v4), !is_loopback(v4)};
  }
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return {"::1", false};
  std::memset(v6.sin6_addr.s6_addr + 8, 0, 8);
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return {std::string(text) + "/64", true};
}

uint16_t port_of(int listener) {
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) return 0;
  if (bound.ss_family == AF_UNIX) return 0;
  in_port_t port = 0;  // at the same place in both
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port, reinterpret_cast<char*>(&bound) + offsetof(sockaddr_in, sin_port),
              sizeof port);
  return ntohs(port);
}

}  // namespace

Result<std::unique_ptr<ControlListener>> ControlListener::open(const ControlAddress& address) {
  const Result<int> listener = listen_on(address);
  if (!listener.ok()) return listener.error();
  return take_over(*listener);
}

Result<std::unique_ptr<ControlListener>> ControlListener::take_over(int listening) {
  const int stopper = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Whoever else holds an inherited socket may accept what poll() saw here.
  const int flags = ::fcntl(listening, F_GETFL);
  if (stopper < 0 || flags < 0 || ::fcntl(listening, F_SETFL, flags | O_NONBLOCK) != 0) {
    const int error = errno;
    ::close(listening);
    if (stopper >= 0) ::close(stopper);
    return errno_error(error, "cannot listen for the control plane");
  }
  return std::unique_ptr<ControlListener>(
      new ControlListener(listening, stopper, port_of(listening)));
}

ControlListener::~ControlListener() {
  stop();
  ::close(listener_);
  ::close(stopper_);
}

void ControlListener::start(Take take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { accept_all(); });
  (void)pthread_setname_np(thread_.native_handle(), "control");
}

void ControlListener::stop() {
  if (!thread_.joinable()) return;
  (void)::eventfd_write(stopper_, 1);
  thread_.join();
}

void ControlListener::accept_all() {
  bool is_paused = false;
  while (true) {
    pollfd waited[2] = {{stopper_, POLLIN, 0}, {listener_, POLLIN, 0}};
    (void)::poll(waited, is_paused ? 1 : 2, is_paused ? kAcceptPauseMs : -1);
    if (waited[0].revents != 0) return;
    is_paused = !accept_one();
  }
}

// False when the system has no room for another one.
bool ControlListener::accept_one() {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  const int handle = ::accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &bytes,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (handle < 0) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }
  const int on = 1;
  (void)::setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto [address, has_share] = origin_of(peer);
  const std::string reason = admit({handle, inode_of(handle), address, has_share});
  if (reason.empty()) {
    take_(handle);
    return true;
  }
  ::close(handle);
  static std::chrono::steady_clock::time_point logged;  // this thread alone
  const auto now = std::chrono::steady_clock::now();
  if (now - logged >= kRefusalLogPeriod) {
    logged = now;
    spdlog::warn("control: refused {}: {}; connected now: {}", address, reason, connected());
  }
  return true;
}

std::string ControlListener::admit(Held held) {
  const std::lock_guard lock(mutex_);
  forget_closed();
  if (held_.size() >= kMaxControlConnections) {
    return "more than " + std::to_string(kMaxControlConnections) + " connections";
  }
  const auto of_address = std::count_if(held_.begin(), held_.end(), [&held](const Held& other) {
    return other.address == held.address;
  });
  if (held.has_share && static_cast<size_t>(of_address) >= kMaxControlConnectionsPerAddress) {
    return "more than " + std::to_string(kMaxControlConnectionsPerAddress) +
           " connections of one address";
  }
  held_.push_back(std::move(held));
  return {};
}

void ControlListener::forget_closed() {
  std::erase_if(held_, [](const Held& held) { return inode_of(held.handle) != held.inode; });
}

std::string ControlListener::connected() {
  std::map<std::string, size_t> counts;
  {
    const std::lock_guard lock(mutex_);
    forget_closed();
    for (const Held& held : held_) ++counts[held.address];
  }
  std::vector<std::pair<size_t, std::string>> most;
  for (const auto& [address, count] : counts) most.emplace_back(count, address);
  std::sort(most.rbegin(), most.rend());
  std::string text;
  for (size_t i = 0; i < most.size() && i < kNamedAddresses; ++i) {
    text += (i == 0 ? "" : ", ") + most[i].second + " (" + std::to_string(most[i].first) + ")";
  }
  if (most.size() > kNamedAddresses) {
    text += " and " + std::to_string(most.size() - kNamedAddresses) + " more addresses";
  }
  return text.empty() ? "nobody" : text;
}

}  // namespace collect::control
