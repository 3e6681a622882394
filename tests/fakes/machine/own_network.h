// A network of its own for the test's thread and for the processes that it starts: loopback, and
// one address that is not loopback, for what depends on who connects from where. It takes root.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/fakes/machine/socket_address.h"

namespace collect::fakes {

inline constexpr in_addr_t kOwnAddress = 0x0A4D0001;
inline constexpr char kOwnAddressText[] = "10.77.0.1";

// The thread is back in the network before when the object ends.
class OwnNetwork {
 public:
  OwnNetwork() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (before_ < 0 || ::unshare(CLONE_NEWNET) != 0) {
      fault_ = std::string("no network of its own here: ") + std::strerror(errno);
      return;
    }
    is_in_ = true;
    const int asked = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::string("lo").copy(loopback.ifr_name, sizeof loopback.ifr_name - 1);
    loopback.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    ifreq another{};
    std::string("lo:1").copy(another.ifr_name, sizeof another.ifr_name - 1);
    const SocketAddress address = tcp4(kOwnAddress, 0);
    std::memcpy(&another.ifr_addr, &address.raw, sizeof another.ifr_addr);
    if (::ioctl(asked, SIOCSIFFLAGS, &loopback) != 0 ||
        ::ioctl(asked, SIOCSIFADDR, &another) != 0) {
      fault_ = std::string("no address for the network: ") + std::strerror(errno);
    }
    ::close(asked);
  }
  ~OwnNetwork() {
    if (is_in_) {
      EXPECT_EQ(::setns(before_, CLONE_NEWNET), 0);
    }
    if (before_ >= 0) ::close(before_);
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  // Why there is none; empty: there is.
  const std::string& fault() const { return fault_; }

 private:
  int before_;
  bool is_in_ = false;
  std::string fault_;
};

}  // namespace collect::fakes
