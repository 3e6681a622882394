// The port of the control plane itself: who is taken, who is turned away, and how it ends.
#include "daemon/control/relay/control_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "tests/daemon/control/http2_frames.h"
#include "tests/fakes/machine/older_kernel.h"
#include "tests/fakes/machine/other_user.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kBoundMs = 30'000;

size_t open_descriptors() {
  return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class ControlListenerTest : public ::testing::Test {
 protected:
  ControlListenerTest() {
    std::string pattern = ::testing::TempDir() + "listener-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = pattern + "/control.sock";
  }
  ~ControlListenerTest() override {
    listener_.reset();
    for (const int fd : owned_) ::close(fd);
    std::filesystem::remove_all(directory_);
  }

  void open(const principal::LocalAccess& local = {}) {
    ControlListener::Options options;
    options.local = local;
    options.unix_path = path_;
    auto opened = ControlListener::open(*parse_control_address("unix:" + path_), options);
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    listener_ = std::move(*opened);
  }
  // What is taken can be asked for with server().
  void start() {
    const Status started = listener_->start([this](int handle) {
      const std::lock_guard lock(mutex_);
      taken_.push_back(handle);
      changed_.notify_all();
    });
    ASSERT_TRUE(started.ok());
  }
  int server() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, milliseconds(kBoundMs), [this] { return !taken_.empty(); })) {
      return -1;
    }
    const int handle = taken_.front();
    taken_.erase(taken_.begin());
    owned_.push_back(handle);
    return handle;
  }
  int connected_client() {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    owned_.push_back(fd);
    return connect(fd) ? fd : -1;
  }
  bool connect(int fd) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  // What comes until the end, or until there are `enough` bytes.
  static std::string receive(int fd, size_t enough = SIZE_MAX) {
    std::string text;
    char some[4096];
    pollfd waited{fd, POLLIN, 0};
    while (text.size() < enough && ::poll(&waited, 1, kBoundMs) == 1) {
      const ssize_t got = ::recv(fd, some, sizeof some, MSG_DONTWAIT);
      if (got <= 0) break;
      text.append(some, static_cast<size_t>(got));
    }
    return text;
  }
  static bool ends(int fd) {
    pollfd waited{fd, POLLIN, 0};
    char byte = 0;
    return ::poll(&waited, 1, kBoundMs) == 1 && ::recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
  }

  std::string directory_;
  std::string path_;
  std::unique_ptr<ControlListener> listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> taken_;
  std::vector<int> owned_;
};

TEST_F(ControlListenerTest, PassesOnWhatItsOwnUserSays) {
  open();
  EXPECT_EQ(listener_->port(), 0);
  start();
  const int client = connected_client();
  ASSERT_EQ(::send(client, kPreface.data(), kPreface.size(), 0), ssize_t(kPreface.size()));
  const int taken = server();
  ASSERT_GE(taken, 0);
  EXPECT_EQ(receive(taken, kPreface.size()), kPreface);
  const std::string user = "user " + std::to_string(::getuid());
  EXPECT_EQ(listener_->connected(), user + " (1)");
  EXPECT_TRUE(std::filesystem::exists(path_));
  listener_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_)) << "its own file goes with it";
}

TEST_F(ControlListenerTest, ClosesDescriptorsItCannotTakeOver) {
  const size_t before = open_descriptors();
  EXPECT_FALSE(ControlListener::take_over(-1, {}).ok());
  EXPECT_EQ(open_descriptors(), before);
  const int place = ::open("/", O_PATH | O_CLOEXEC);  // its flags can't be set
  EXPECT_FALSE(ControlListener::take_over(place, {}).ok());
  EXPECT_EQ(open_descriptors(), before) << "what is handed over is closed";
}

// It takes three: to be woken by, to wait with, and one in reserve.
TEST_F(ControlListenerTest, WithoutDescriptorsASocketIsRefusedAndClosed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const int left : {0, 1, 2, 3}) {
    const auto inherited = listen_on(*parse_control_address("unix:" + path_));
    ASSERT_TRUE(inherited.ok());
    const size_t open = open_descriptors();
    std::vector<int> free;
    for (int i = 0; i <= left; ++i) free.push_back(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    for (const int fd : free) ::close(fd);
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(free.back());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto taken_over = ControlListener::take_over(*inherited, {});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(taken_over.ok(), left == 3) << left;
    EXPECT_EQ(open_descriptors(), left == 3 ? open + 3 : open - 1) << left;
    if (!taken_over.ok()) {
      EXPECT_EQ(taken_over.code(), Code::kExhausted) << to_string(taken_over.error());
    }
    std::filesystem::remove(path_);
  }
}

// The connection waits, and so does the thread, instead of asking again and again.
TEST_F(ControlListenerTest, RetriesLaterWithoutMemoryForAConnection) {
  for (const int error : {ENOMEM, ENOBUFS}) {
    const int outcome = fakes::without_system_call(
        SYS_accept4,
        [this] {
          open();
          start();
          if (connected_client() < 0) return 1;
          timespec used{};
          ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
          ::poll(nullptr, 0, 400);
          timespec then{};
          ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &then);
          const double busy =
              double(then.tv_sec - used.tv_sec) + double(then.tv_nsec - used.tv_nsec) / 1e9;
          listener_.reset();
          return busy < 0.1 ? 0 : 2;
        },
        error);
    EXPECT_EQ(outcome, 0) << error;
  }
}

TEST_F(ControlListenerTest, InheritedSocketKeepsItsFile) {
  const auto inherited = listen_on(*parse_control_address("unix:" + path_));
  ASSERT_TRUE(inherited.ok());
  auto taken_over = ControlListener::take_over(*inherited, {});
  ASSERT_TRUE(taken_over.ok());
  listener_ = std::move(*taken_over);
  EXPECT_NE(::fcntl(*inherited, F_GETFL) & O_NONBLOCK, 0)
      << "someone else may accept what was seen here";
  start();
  ASSERT_GE(connected_client(), 0);
  EXPECT_GE(server(), 0);
  listener_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

// Who proves within TLS who it is needs no uid; the token may come while the daemon runs.
TEST_F(ControlListenerTest, OnlyWithoutAProofTheUidDecides) {
  constexpr int kRefused = 1, kServed = 2, kNothing = 3;
  // A name without a file: every user reaches it, wherever temporary files lie.
  const auto name =
      fakes::unix_name(std::string(1, '\0') + "control_" + std::to_string(::getpid()));
  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listening, name.get(), name.bytes), 0);
  ASSERT_EQ(::listen(listening, 8), 0);
  auto taken_over = ControlListener::take_over(listening, {});
  ASSERT_TRUE(taken_over.ok());
  listener_ = std::move(*taken_over);
  start();
  // Refused ones get the SETTINGS of the answer that says why; the others what the server says.
  const auto connects = [&name] {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, name.get(), name.bytes) != 0) return kNothing;
    const std::string settings = frame(4, 0, 0);
    const std::string came = receive(fd, 1);
    return came == settings ? kRefused : came == "served" ? kServed : kNothing;
  };
  fakes::OtherUser before(connects);
  const int outcome = before.wait();
  if (outcome == fakes::OtherUser::kNotThatUser) GTEST_SKIP() << "only root becomes another user";
  EXPECT_EQ(outcome, kRefused);
  listener_->set_asks_for_proof(true);
  fakes::OtherUser proving(connects);
  const int taken = server();
  ASSERT_GE(taken, 0);
  EXPECT_EQ(::send(taken, "served", 6, MSG_NOSIGNAL), 6);
  EXPECT_EQ(proving.wait(), kServed);
}

// The client of a process without descriptors is not left waiting, and the next one is served.
TEST_F(ControlListenerTest, WithoutADescriptorClientsAreTurnedAway) {
  open();
  start();
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int second = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  owned_.insert(owned_.end(), {client, second});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
  ::close(lowest);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  for (const int fd : {client, second}) {
    EXPECT_TRUE(connect(fd));
    EXPECT_TRUE(ends(fd));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_GE(connected_client(), 0);
  EXPECT_GE(server(), 0);
}

TEST_F(ControlListenerTest, KeepsConnectionsAfterItStopsAccepting) {
  open();
  start();
  const int client = connected_client();
  const int taken = server();
  ASSERT_GE(taken, 0);
  listener_->stop_accepting();
  // Beyond the moment in which it was still accepting: no one takes this one.
  const std::string hello = kPreface + frame(4, 0, 0);
  ASSERT_EQ(::send(client, hello.data(), hello.size(), 0), ssize_t(hello.size()));
  EXPECT_EQ(receive(taken, hello.size()), hello);
  (void)connected_client();
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  pollfd nothing{client, POLLIN, 0};
  EXPECT_EQ(::poll(&nothing, 1, 400), 0);
  timespec then{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &then);
  const double busy = double(then.tv_sec - used.tv_sec) + double(then.tv_nsec - used.tv_nsec) / 1e9;
  EXPECT_LT(busy, 0.1) << "it waits for something to do";
  const std::lock_guard lock(mutex_);
  EXPECT_TRUE(taken_.empty());
}

// What gRPC wrote last has its time to reach a client that is slow, and no more than that.
TEST_F(ControlListenerTest, EndWaitsForWhoIsStillConnected) {
  open();
  start();
  ASSERT_GE(connected_client(), 0);
  ASSERT_GE(server(), 0);
  const auto begun = steady_clock::now();
  listener_->stop();
  EXPECT_GE(steady_clock::now() - begun, kRelayDrain);
  listener_->stop();  // again does nothing
}

TEST_F(ControlListenerTest, StopsAtOnceWithoutConnections) {
  open();
  start();
  const int client = connected_client();
  ::close(server());
  owned_.pop_back();
  EXPECT_TRUE(ends(client));
  auto stopped = std::async(std::launch::async, [this] { listener_->stop(); });
  EXPECT_EQ(stopped.wait_for(milliseconds(kBoundMs)), std::future_status::ready);
}

}  // namespace
}  // namespace collect::control
