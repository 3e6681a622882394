#include "daemon/control/relay/control_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/core/threads.h"

namespace collect::control {
namespace {

constexpr int kAcceptPauseMs = 100;  // out of memory: others must end first

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

Result<std::unique_ptr<ControlListener>> ControlListener::open(const ControlAddress& address,
                                                               const Options& options) {
  const Result<int> listener = listen_on(address);
  if (!listener.ok()) return listener.error();
  return take_over(*listener, options);
}

Result<std::unique_ptr<ControlListener>> ControlListener::take_over(int listening,
                                                                    const Options& options) {
  const int waker = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Another process that holds an inherited socket may accept what poll() saw here.
  const int flags = ::fcntl(listening, F_GETFL);
  if (waker < 0 || ::fcntl(listening, F_SETFL, flags | O_NONBLOCK) != 0) {
    const int error = errno;
    ::close(listening);
    if (waker >= 0) ::close(waker);
    return errno_error(error, "cannot listen for the control plane");
  }
  std::unique_ptr<ControlListener> made(
      new ControlListener(listening, waker, port_of(listening), options));
  COLLECT_TRY(made->relay_.open());
  if (!options.unix_path.empty()) COLLECT_TRY(options.local.open_socket_file(options.unix_path));
  return made;
}

ControlListener::ControlListener(int listener, int waker, uint16_t port, const Options& options)
    : listener_(listener),
      waker_(waker),
      port_(port),
      local_(options.local),
      unix_path_(options.unix_path),
      asks_for_proof_(options.asks_for_proof),
      relay_(options.is_tls),
      reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

ControlListener::~ControlListener() {
  stop();
  ::close(listener_);
  ::close(waker_);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  if (reserve_ >= 0) ::close(reserve_);
}

Status ControlListener::start(Take take) {
  take_ = std::move(take);
  auto started = start_thread("control", [this] { accept_all(); });
  if (!started.ok()) return started.error();
  thread_ = std::move(*started);
  return {};
}

void ControlListener::change(Step step) {
  step_ = step;
  (void)::eventfd_write(waker_, 1);
}

void ControlListener::stop_accepting() {
  change(Step::kRelaying);
}

void ControlListener::stop() {
  if (!thread_.joinable()) return;
  change(Step::kStopped);
  thread_.join();
}

void ControlListener::accept_all() {
  bool is_paused = false;
  while (step_ != Step::kStopped) {
    const bool accepts = step_ == Step::kAccepting && !is_paused;
    pollfd waited[3] = {{waker_, POLLIN, 0}, {relay_.handle(), POLLIN, 0}, {listener_, POLLIN, 0}};
    (void)::poll(waited, accepts ? 3 : 2, is_paused ? kAcceptPauseMs : relay_.wait_ms());
    eventfd_t ignored = 0;
    if (waited[0].revents != 0) (void)::eventfd_read(waker_, &ignored);
    relay_.run();
    is_paused = false;
    if (waited[2].revents != 0) is_paused = !accept_one();
  }
  drain();
}

void ControlListener::drain() {
  const auto end = std::chrono::steady_clock::now() + kRelayDrain;
  while (!relay_.is_empty() && std::chrono::steady_clock::now() < end) {
    pollfd waited = {relay_.handle(), POLLIN, 0};
    (void)::poll(&waited, 1, 50);
    relay_.run();
  }
}

// False when the system has no room for another one.
bool ControlListener::accept_one() {
  const int handle = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (handle >= 0) {
    decide(handle);
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    turn_away_beyond_descriptors();
    return reserve_ >= 0;
  }
  return errno != ENOBUFS && errno != ENOMEM;
}

// A connection that no one accepts would make the listener ready for ever, and its client wait.
void ControlListener::turn_away_beyond_descriptors() {
  if (reserve_ >= 0) ::close(reserve_);
  const int handle = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (handle >= 0) ::close(handle);
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  log_refusal("a connection", "this process has no descriptor left");
}

void ControlListener::decide(int handle) {
  const int on = 1;
  (void)::setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const Result<principal::Peer> peer = peers_.identify(handle);
  if (!peer.ok()) {
    ::close(handle);
    log_refusal("a connection", peer.error().message);
    return;
  }
  if (peer->is_local && !asks_for_proof_) {
    if (const std::string why = local_.refusal(*peer); !why.empty()) {
      const bool was_probe = principal::ended_without_bytes(handle);
      relay_.refuse(handle, why);
      if (!was_probe) log_refusal(describe(peer->principal), why);
      return;
    }
  }
  const Status admitted = relay_.admit(handle, peer->principal, take_);
  if (!admitted.ok()) log_refusal(describe(peer->principal), admitted.error().message);
}

void ControlListener::log_refusal(const std::string& who, const std::string& why) {
  const uint64_t count = refusals_.count(std::chrono::steady_clock::now());
  if (count == 0) return;
  spdlog::warn("control: refused {}{}: {}; connected now: {}", who,
               count == 1 ? "" : fmt::format(" ({} since the last such line)", count), why,
               connected());
}

}  // namespace collect::control
