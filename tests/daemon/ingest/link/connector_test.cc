// Connections on their way from the thread that made them, and the sockets themselves.
#include "daemon/ingest/link/connector.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/ingest/io_thread.h"
#include "daemon/ingest/session/core.h"
#include "storage/fs/posix_fs.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using fakes::ListeningSocket;

class ConnectorTest : public testing::Test {
 protected:
  // What comes of connecting there.
  Result<ConnectedSocket> connected(const std::string& address) {
    std::optional<Result<ConnectedSocket>> answer;
    const Connector connector = connector_to(loop_.io(), *parse_address(address));
    connector([&](Result<ConnectedSocket> result) { answer.emplace(std::move(result)); });
    EXPECT_FALSE(answer.has_value()) << "not from inside the call";
    EXPECT_TRUE(loop_.run_until([&] { return answer.has_value(); }));
    return answer ? std::move(*answer) : Error{Code::kCancelled, "no answer"};
  }
  IoLoop loop_;
};

TEST_F(ConnectorTest, ClosesSocketsThatAreNotTaken) {
  auto [socket, other] = loop_.connection();
  {
    Result<ConnectedSocket> made = ConnectedSocket::from(std::move(socket));
    ASSERT_TRUE(made.ok());
    const ConnectedSocket moved = std::move(*made);
    EXPECT_FALSE(other.ends(milliseconds{0}));
  }
  EXPECT_TRUE(other.ends(milliseconds{0}));
}

TEST_F(ConnectorTest, KeepsTakenSocketsOpen) {
  auto [socket, other] = loop_.connection();
  std::optional<Result<Socket>> taken;
  {
    Result<ConnectedSocket> made = ConnectedSocket::from(std::move(socket));
    ASSERT_TRUE(made.ok());
    taken.emplace(std::move(*made).adopt(loop_.io()));
  }
  ASSERT_TRUE(taken->ok());
  EXPECT_EQ((*taken)->local_endpoint().protocol().family(), AF_UNIX);
  FrameSocket own((*taken)->release());
  EXPECT_TRUE(own.send(wire::FrameType::kHeartbeat, wire::Heartbeat()));
  EXPECT_TRUE(other.receive(milliseconds{0}).has_value());
}

TEST_F(ConnectorTest, SocketWithoutADescriptorIsNoConnection) {
  const auto made = ConnectedSocket::from(Socket(loop_.io()));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.code(), Code::kUnavailable);
  EXPECT_FALSE(ConnectedSocket(-1, AF_INET).adopt(loop_.io()).ok());
}

TEST_F(ConnectorTest, NumbersAndNamesAreReached) {
  ListeningSocket listener;
  const std::string port = listener.address().substr(listener.address().rfind(':'));
  // The second is no number of ours: the system looks it up, and knows it without asking anybody.
  for (const std::string& to : {listener.address(), "127.1" + port}) {
    auto made = connected(to);
    ASSERT_TRUE(made.ok()) << to << ": " << to_string(made.error());
    FrameSocket accepted = listener.accept();
    EXPECT_TRUE(accepted.is_open());
    auto socket = std::move(*made).adopt(loop_.io());
    ASSERT_TRUE(socket.ok());
    EXPECT_EQ(endpoint_text(socket->remote_endpoint()), listener.address());
  }
  const std::string nowhere = listener.address();
  listener.close();
  const auto refused = connected(nowhere);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_EQ(refused.error().message, "Connection refused");
  EXPECT_EQ(connected("127.1" + port).error().message, "Connection refused");
  // No label is that long, so no one is asked for it either.
  const auto unknown = connected(std::string(64, 'a') + ":1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.code(), Code::kUnavailable);
}

TEST(ResolveTest, NamesAreLookedUp) {
  const auto found = resolve_endpoint(*parse_address("127.1:80"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(endpoint_text(*found), "127.0.0.1:80");
  EXPECT_EQ(numeric_endpoint(*parse_address("127.1:80")).code(), Code::kUnsupported);
  const auto unknown = resolve_endpoint(*parse_address(std::string(64, 'a') + ":80"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_THAT(unknown.error().message, testing::StartsWith("address \"aaaa"));
}

// ---- the thread that a connection comes to

TEST(HandoverTest, ClosesSocketsThatAreNotAdopted) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameSocket other(ends[1]);
  {
    Handover handover;
    handover.handle = ends[0];
  }
  EXPECT_TRUE(other.ends(milliseconds{0}));
}

class IoThreadTest : public IngestTest {
 protected:
  IoThreadTest() : core_(options_, posix_, reported_), thread_(core_) {}
  std::pair<std::shared_ptr<Handover>, FrameSocket> connection() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    auto handover = std::make_shared<Handover>();
    handover->handle = ends[0];
    handover->family = AF_UNIX;
    handover->peer = "peer";
    return {std::move(handover), FrameSocket(ends[1])};
  }

  IngestCore core_;
  IoThread thread_;
};

TEST_F(IoThreadTest, AsksNewAgentsToRetryWhileStopping) {
  core_.stopping = true;
  ASSERT_TRUE(thread_.run().ok());
  auto [handover, other] = connection();
  handover->checked.hello = fakes::FakeAgent().hello(wire::CHANNEL_CONTROL);
  thread_.take(std::move(handover));
  const auto refuse = other.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_SHUTTING_DOWN);
  EXPECT_TRUE(refuse->parsed<wire::Refuse>().retry());

  auto [feed, sender] = connection();
  feed->is_feed = true;
  feed->early = {'T', 'R', 'C', 0, 1};
  thread_.take(std::move(feed));
  EXPECT_TRUE(sender.ends());
  EXPECT_EQ(core_.counters.connections_refused, 1u);
  EXPECT_EQ(reported_.session_count(), 0u);
}

TEST_F(IoThreadTest, FreesUnusedBuffers) {
  core_.lane_buffers.give_back(core_.lane_buffers.take());
  ASSERT_TRUE(thread_.run().ok());
  EXPECT_TRUE(eventually([&] { return core_.lane_buffers.free_buffers() == 0; }));
}

}  // namespace
}  // namespace collect::ingest
