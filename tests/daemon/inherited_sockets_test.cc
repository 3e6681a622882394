// Sockets that a service manager hands over: a child process gets them as it would from systemd,
// and says what it took.
#include "daemon/inherited_sockets.h"
#include "tests/child/forked_child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace collect::daemon {
namespace {

enum class Given { kListening, kConnectable, kDatagrams, kFile };

int make(Given what) {
  if (what == Given::kFile) return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int type = what == Given::kDatagrams ? SOCK_DGRAM : SOCK_STREAM;
  const int handle = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(handle, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) return -1;
  if (what == Given::kListening && ::listen(handle, 1) != 0) return -1;
  return handle;
}

// In the child: the descriptors from 3 on, and the variables that tell of them.
std::string take(const std::vector<Given>& given, const std::string& names,
                 const std::string& count) {
  std::vector<int> handles;
  for (const Given one : given) {
    handles.push_back(::fcntl(make(one), F_DUPFD_CLOEXEC, 100));
  }
  for (size_t at = 0; at < handles.size(); ++at) {
    ::dup2(handles[at], 3 + static_cast<int>(at));
    ::close(handles[at]);
  }
  if (!given.empty()) {
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", count.c_str(), 1);
    ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
  const auto sockets = take_inherited_sockets();
  const bool is_kept = ::getenv("LISTEN_PID") != nullptr || ::getenv("LISTEN_FDS") != nullptr ||
                       ::getenv("LISTEN_FDNAMES") != nullptr;
  if (is_kept) return "the variables are still there";
  if (!sockets.ok()) return sockets.error().message;
  return std::to_string(sockets->ingest) + " " + std::to_string(sockets->control);
}

// "ingest control" as numbers, or the sentence of a refusal.
std::string taken(const std::vector<Given>& given, const std::string& names,
                  std::string count = {}) {
  if (count.empty()) count = std::to_string(given.size());
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  child::ForkedChild child([&] {
    const int out = ::fcntl(ends[1], F_DUPFD, 200);  // out of the way of what is given
    const std::string said = take(given, names, count);
    const bool wrote = ::write(out, said.data(), said.size()) == static_cast<ssize_t>(said.size());
    return wrote ? 0 : 1;
  });
  ::close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    said.append(part, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  EXPECT_EQ(child.wait().describe(), "exit 0");
  return said;
}

constexpr Given kListening = Given::kListening;

TEST(InheritedSocketsTest, EachIsTakenByItsName) {
  EXPECT_EQ(taken({}, ""), "-1 -1");
  EXPECT_EQ(taken({kListening}, "ingest"), "3 -1");
  EXPECT_EQ(taken({kListening}, "control"), "-1 3");
  EXPECT_EQ(taken({kListening, kListening}, "ingest:control"), "3 4");
  EXPECT_EQ(taken({kListening, kListening}, "control:ingest"), "4 3");
}

TEST(InheritedSocketsTest, NamesUnexpectedSockets) {
  EXPECT_EQ(taken({kListening, kListening}, "ingest:gate"),
            "inherited socket 4 \"gate\": the names are ingest and control (FileDescriptorName=)");
  EXPECT_EQ(taken({kListening, kListening}, "control:control"),
            "inherited socket 4 \"control\": there is one already; one address each");
  EXPECT_EQ(taken({kListening, kListening}, "ingest:ingest"),
            "inherited socket 4 \"ingest\": there is one already; one address each");
  for (const Given wrong : {Given::kConnectable, Given::kDatagrams, Given::kFile}) {
    EXPECT_EQ(taken({wrong}, "ingest"),
              "inherited socket 3 \"ingest\": it is no stream socket that listens "
              "(ListenStream=, Accept=no)");
  }
  EXPECT_EQ(taken({kListening}, "ingest", "some"),
            "inherited sockets (LISTEN_FDS, LISTEN_FDNAMES): Invalid argument");
}

}  // namespace
}  // namespace collect::daemon
