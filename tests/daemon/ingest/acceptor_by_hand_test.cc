// A listener and a dialler driven by hand: what becomes of connections that no one wants, and what
// is left when they stop.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "daemon/ingest/acceptor.h"
#include "daemon/ingest/dialler.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class ByHandTest : public IngestTest {
 protected:
  ~ByHandTest() override {
    if (acceptor_) acceptor_->stop();
    loop_.run();
    feeds_.clear();
    core_->stop_threads();
  }
  void begin() {
    core_ = std::make_unique<IngestCore>(options_, posix_, reported_);
    acceptor_ = std::make_shared<Acceptor>(
        *core_, loop_.io(), [](const std::shared_ptr<Link>&, const CheckedHello&) {},
        [this](std::shared_ptr<Link> link) { feeds_.push_back(std::move(link)); });
  }
  void listen() {
    begin();
    const Status opened = acceptor_->open(options_.listen);
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    acceptor_->start();
  }
  FrameSocket connect() {
    FrameSocket socket = FrameSocket::connect(acceptor_->address());
    loop_.run();
    return socket;
  }
  std::optional<wire::Refuse> refusal_of(FrameSocket& socket) {
    std::optional<fakes::ReceivedFrame> frame;
    EXPECT_TRUE(loop_.run_until([&] {
      frame = socket.receive_type(FrameType::kRefuse, milliseconds{0});
      return frame.has_value() || !socket.timed_out();
    }));
    return frame ? std::optional(frame->parsed<wire::Refuse>()) : std::nullopt;
  }

  IoLoop loop_;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<Acceptor> acceptor_;
  std::vector<std::shared_ptr<Link>> feeds_;
};

TEST_F(ByHandTest, StoppedItListensNoMore) {
  listen();
  EXPECT_TRUE(connect().is_open());
  acceptor_->stop();
  loop_.run();
  EXPECT_FALSE(FrameSocket::connect(acceptor_->address()).is_open());
  EXPECT_EQ(core_->counters.connections_accepted, 1u);
}

// No child of the daemon inherits it, although another process opened it.
TEST_F(ByHandTest, InheritedSocketIsCloseOnExec) {
  begin();
  const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto where = fakes::tcp4(INADDR_LOOPBACK, 0);
  ASSERT_EQ(::bind(handle, where.get(), where.bytes), 0);
  ASSERT_EQ(::listen(handle, 16), 0);
  ASSERT_EQ(::fcntl(handle, F_GETFD), 0);
  ASSERT_TRUE(acceptor_->take_over(handle).ok());
  EXPECT_EQ(::fcntl(handle, F_GETFD), FD_CLOEXEC);
  acceptor_->start();
  EXPECT_TRUE(connect().is_open());
  EXPECT_EQ(core_->counters.connections_accepted, 1u);
}

// DAEMON.md "Limits": so many may take their time to read why, the next is closed at once.
TEST_F(ByHandTest, LimitsRefusalsWithAReason) {
  options_.max_connections = kLeastConnections;
  options_.local_access = *principal::LocalAccess::parse("any");
  listen();
  principal::Lease all(core_->budget.account(principal::Principal::of_uid(::geteuid())),
                       principal::Resource::kConnections);
  all.set(kLeastConnections);
  std::vector<FrameSocket> refused;
  for (uint32_t at = 0; at <= kMaxLingering; ++at) {
    refused.push_back(FrameSocket::connect(acceptor_->address()));
    ASSERT_TRUE(refused.back().is_open()) << at;
  }
  const auto began = std::chrono::steady_clock::now();
  loop_.run();
  if (std::chrono::steady_clock::now() - began > kLingerDeadline / 2) {
    GTEST_SKIP() << "the machine is too slow: the first of them may have had their time";
  }
  size_t refusals = 0;
  for (FrameSocket& socket : refused) {
    const auto refusal = refusal_of(socket);
    if (!refusal) continue;
    ++refusals;
    EXPECT_EQ(refusal->code(), wire::REFUSE_LIMIT);
    EXPECT_TRUE(refusal->retry());
    EXPECT_THAT(refusal->reason(), HasSubstr("max_connections"));
  }
  EXPECT_EQ(refusals, kMaxLingering);
  EXPECT_EQ(core_->counters.connections_refused, kMaxLingering + 1);
  // When they have gone there is room for as many.
  refused.clear();
  EXPECT_TRUE(loop_.run_until([&] {
    FrameSocket again = FrameSocket::connect(acceptor_->address());
    return refusal_of(again).has_value();
  }));
}

// A header of dial9 is waited for to its end, however it is cut.
TEST_F(ByHandTest, FeedIsKnownByItsHeader) {
  listen();
  FrameSocket feed = connect();
  const uint8_t header[] = {'T', 'R', 'C', 0, 1};
  for (const uint8_t& byte : header) {
    EXPECT_THAT(feeds_, IsEmpty());
    ASSERT_TRUE(feed.send_bytes({&byte, 1}));
    loop_.run();
  }
  ASSERT_EQ(feeds_.size(), 1u);
  EXPECT_THAT(feeds_[0]->take_early(), ElementsAre('T', 'R', 'C', 0, 1));
  EXPECT_EQ(core_->counters.connections_refused, 0u);
  EXPECT_FALSE(feed.ends(milliseconds{0}));
}

TEST_F(ByHandTest, FeedsThatAreNoneAreRefusedAndLogged) {
  capture_log();
  listen();
  const auto sent = [&](std::vector<uint8_t> bytes) {
    FrameSocket feed = connect();
    EXPECT_TRUE(feed.send_bytes(bytes));
    EXPECT_TRUE(loop_.run_until([&] { return feed.ends(milliseconds{0}); }));
  };
  sent({'T', 'R', 'C', 0, 2});
  EXPECT_THAT(log_->text(), HasSubstr("a dial9 stream of version 2, which is not known"));
  ASSERT_TRUE(core_->set_access("secret", nullptr).ok());
  sent({'T', 'R', 'C', 0, 1});
  EXPECT_THAT(log_->text(), HasSubstr("a dial9 stream: it can show no token"));
  EXPECT_THAT(feeds_, IsEmpty());
  EXPECT_EQ(core_->counters.connections_refused, 2u);
}

// ---- dialling

TEST_F(ByHandTest, DiallerThatStoppedLetsGoOfItsPlaces) {
  begin();
  Dialler dialler(*core_, loop_.io(),
                  [](const std::shared_ptr<Link>&, const CheckedHello&, const std::string&) {});
  const auto held = std::make_shared<int>(1);
  int reports = 0;
  ASSERT_TRUE(dialler
                  .attach(
                      "place", [held](const OnConnected&) {},
                      [&](const DialReport& report) {
                        ++reports;
                        EXPECT_EQ(report.state, DialReport::State::kStopped);
                      })
                  .ok());
  EXPECT_EQ(dialler.attach("place", [](const OnConnected&) {}, {}).code(), Code::kAlreadyExists);
  EXPECT_GT(held.use_count(), 1);
  dialler.stop();
  loop_.run();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(reports, 1);
  EXPECT_FALSE(dialler.detach("place"));
}

// An address that fails is dialled again, and each new reason is reported.
TEST_F(ByHandTest, ReportsEachReasonOnce) {
  begin();
  Dialler dialler(*core_, loop_.io(),
                  [](const std::shared_ptr<Link>&, const CheckedHello&, const std::string&) {});
  std::vector<OnConnected> asked;
  std::vector<std::string> reports;
  ASSERT_TRUE(dialler
                  .attach(
                      "place", [&](OnConnected done) { asked.push_back(std::move(done)); },
                      [&](const DialReport& report) { reports.push_back(report.status); })
                  .ok());
  for (const char* why : {"one", "one", "two"}) {
    const size_t before = asked.size();
    asked.back()(Error{Code::kUnavailable, why});
    EXPECT_TRUE(loop_.run_until([&] { return asked.size() == before + 1; }));
  }
  EXPECT_THAT(reports, ElementsAre("one", "two"));
  asked[0](Error{Code::kUnavailable, "too late"});
  loop_.run();
  EXPECT_EQ(reports.size(), 2u);
  EXPECT_EQ(asked.size(), 4u);
  dialler.stop();
  asked.back()(Error{Code::kUnavailable, "too late"});
  loop_.run();
  EXPECT_THAT(reports, ElementsAre("one", "two", ""));
}

TEST_F(ByHandTest, PlaceThatIsDetachedIsLetGoOf) {
  begin();
  Dialler dialler(*core_, loop_.io(),
                  [](const std::shared_ptr<Link>&, const CheckedHello&, const std::string&) {});
  const auto held = std::make_shared<int>(1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(
        dialler.attach("place", [held](const OnConnected&) {}, [](const DialReport&) {}).ok());
    EXPECT_TRUE(dialler.detach("place"));
    loop_.run();
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_FALSE(dialler.detach("place"));
  }
  const auto first = dialler.attach("127.0.0.1:1");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(dialler.detach("127.0.0.1:1"));
  const auto second = dialler.attach("127.0.0.1:1");
  ASSERT_TRUE(second.ok());
  EXPECT_NE(first->id, second->id);
  dialler.stop();
}

}  // namespace
}  // namespace collect::ingest
