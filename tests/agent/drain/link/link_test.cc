// A Link with a clock of the test's: when it tries again, how long it waits, and what it takes for
// the end of a collector.
#include "agent/drain/link/link.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/drain/link/status.h"
#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "tests/agent/drain/link/link_fixture.h"
#include "tests/fakes/machine/foreign_listener.h"

namespace collect::agent {
namespace {

TEST_F(LinkTest, ComesUpOnceAndSaysWhatWasAgreed) {
  connect_to(collector_.address());
  EXPECT_FALSE(link_->is_opening());
  EXPECT_FALSE(link_->take_came_up());
  step();
  EXPECT_TRUE(link_->is_opening());
  EXPECT_FALSE(link_->is_up());
  come_up(1000, true);
  EXPECT_TRUE(link_->take_came_up());
  EXPECT_FALSE(link_->take_came_up());
  EXPECT_FALSE(link_->is_opening());
  EXPECT_TRUE(link_->resumed());
  EXPECT_EQ(link_->features(), wire::kFeatureColumns);
  EXPECT_EQ(link_->rounds_failed(), 0u);
  EXPECT_EQ(std::string(status()), "connected to script ?[1m by " + collector_.address());
  cut();
  EXPECT_FALSE(link_->take_came_up());
  EXPECT_EQ(link_->down_since_ms(), now_ms_);
  come_up();
  EXPECT_TRUE(link_->take_came_up());
  EXPECT_FALSE(link_->resumed());
}

TEST_F(LinkTest, LinkThatBreaksAtOnceHasNotComeUp) {
  connect_to(collector_.address());
  come_up();
  link_->break_link(now_ms_, "a reason");
  EXPECT_FALSE(link_->take_came_up());
  EXPECT_EQ(std::string(status()), "the link to the collector broke: a reason; trying again");
  EXPECT_TRUE(control_.ends());
  EXPECT_TRUE(data_.ends());
}

TEST_F(LinkTest, HeartbeatHasItsBounds) {
  connect_to(collector_.address());
  for (const auto& [said, meant] : {std::pair{0u, 1000u},
                                    {1u, 50u},
                                    {49u, 50u},
                                    {50u, 50u},
                                    {51u, 51u},
                                    {59'999u, 59'999u},
                                    {60'000u, 60'000u},
                                    {60'001u, 60'000u},
                                    {UINT32_MAX, 60'000u}}) {
    come_up(said);
    EXPECT_EQ(link_->heartbeat_ms(), meant) << said;
    cut();
  }
}

TEST_F(LinkTest, IsSilentAfterThreeIntervals) {
  connect_to(collector_.address());
  come_up(2000);
  EXPECT_FALSE(link_->is_silent(now_ms_ + 6000));
  EXPECT_TRUE(link_->is_silent(now_ms_ + 6001));
  now_ms_ += 5000;
  EXPECT_TRUE(link_->read(now_ms_, link_->control()));
  EXPECT_TRUE(link_->is_silent(now_ms_ + 1001)) << "nothing was heard";
  control_.send(FrameType::kHeartbeat, wire::Heartbeat());
  pollfd waiting{link_->control().socket.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, 60'000), 1);
  EXPECT_TRUE(link_->read(now_ms_, link_->control()));
  EXPECT_FALSE(link_->is_silent(now_ms_ + 6000));
  EXPECT_TRUE(link_->is_silent(now_ms_ + 6001));
}

TEST_F(LinkTest, LeavesASilentCollectorAfterFiveSeconds) {
  connect_to(collector_.address());
  step();
  control_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->control());
  step(4999);
  EXPECT_TRUE(is_trying());
  step(1);
  EXPECT_FALSE(is_trying());
  EXPECT_EQ(std::string(status()),
            "no link to the collector: the handshake took too long; trying again");
  EXPECT_EQ(link_->rounds_failed(), 1u);
  EXPECT_TRUE(control_.ends());
}

TEST_F(LinkTest, OtherHalfOfAPairHasTenSeconds) {
  connect_to(collector_.address());
  step();
  control_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->control());
  now_ms_ += 3000;
  welcome(control_, link_->control(), 60'000);
  data_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->data());
  step(9999);
  EXPECT_EQ(link_->control().step, ChannelStep::kOpen);
  EXPECT_EQ(link_->data().step, ChannelStep::kGreeting);
  step(1);
  EXPECT_EQ(link_->control().step, ChannelStep::kClosed) << "one half alone is no link";
  EXPECT_EQ(link_->data().step, ChannelStep::kClosed);
}

TEST_F(LinkTest, AttemptsComeLessAndLessOften) {
  connect_to(collector_.address());
  step();
  for (const uint64_t longest : {50u, 100u, 200u, 400u, 800u, 1600u, 2000u, 2000u, 2000u}) {
    collector_.accept().close();
    for (int i = 0; i < 5000 && is_trying(); ++i) step();
    const uint64_t waited = next_attempt();
    EXPECT_GE(waited, longest / 2);
    EXPECT_LE(waited, longest);
  }
  EXPECT_EQ(link_->rounds_failed(), 9u);
  step_until(ChannelStep::kGreeting, link_->control());
  collector_.accept().close();
  for (int i = 0; i < 5000 && is_trying(); ++i) step();
  link_->retry_now();
  EXPECT_EQ(next_attempt(), 0u);
}

// The intervals begin again after a link that held, and after no other.
TEST_F(LinkTest, StableLinkIsTriedAgainSoon) {
  connect_to(collector_.address());
  for (const uint64_t held_ms : {4999u, 5000u}) {
    if (!is_trying()) (void)next_attempt();
    for (int i = 0; i < 6; ++i) {
      collector_.accept().close();
      for (int k = 0; k < 5000 && is_trying(); ++k) step();
      (void)next_attempt();
    }
    come_up(60'000);
    now_ms_ += held_ms;
    cut();
    const uint64_t waited = next_attempt();
    if (held_ms < 5000) {
      EXPECT_GE(waited, 1000u);
    } else {
      EXPECT_LE(waited, 50u);
    }
    collector_.accept().close();
    for (int k = 0; k < 5000 && is_trying(); ++k) step();
  }
}

TEST_F(LinkTest, AddressesOfANameAreTriedInTurn) {
  const std::string port = collector_.address().substr(collector_.address().find(':'));
  connect_to("localhost" + port);
  step();
  // 127.0.0.1 first; it closes, and ::1, where no one listens, is next, without a pause.
  control_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->control());
  control_.close();
  for (int i = 0; i < 5000 && is_trying(); ++i) step();
  EXPECT_EQ(link_->rounds_failed(), 1u) << "it was connected: the name's next one is no better";
  EXPECT_LE(next_attempt(), 50u);
  control_ = collector_.accept();
  EXPECT_TRUE(control_.is_open()) << "the first address again";
}

TEST_F(LinkTest, GoodbyeWithAReturnIsBelievedForThirtySeconds) {
  connect_to(collector_.address());
  come_up();
  EXPECT_FALSE(link_->collector_returns(now_ms_));
  link_->collector_leaves(now_ms_, true);
  EXPECT_FALSE(link_->given_up());
  EXPECT_TRUE(link_->collector_returns(now_ms_ + 29'999));
  EXPECT_FALSE(link_->collector_returns(now_ms_ + 30'000));
  EXPECT_EQ(std::string(status()),
            "the link to the collector broke: the collector stops, and will be back; trying again");
}

TEST_F(LinkTest, FinalGoodbyeEndsTheLinkWithoutASpool) {
  connect_to(collector_.address());
  come_up();
  settings_.spool[0] = '/';
  link_->collector_leaves(now_ms_, false);
  EXPECT_FALSE(link_->given_up());
  EXPECT_EQ(std::string(status()),
            "the link to the collector broke: the collector stops for good; trying again");
  settings_.spool[0] = '\0';
  link_->collector_leaves(now_ms_, false);
  EXPECT_TRUE(link_->given_up());
  EXPECT_FALSE(link_->is_opening());
  step(10'000);
  EXPECT_FALSE(is_trying());
}

TEST_F(LinkTest, EndThatIsExpectedIsNoNews) {
  connect_to(collector_.address());
  come_up();
  const std::string before = status();
  link_->expect_end();
  link_->break_link(now_ms_, "a reason");
  EXPECT_EQ(std::string(status()), before);
}

TEST_F(LinkTest, PollsForWhatItWaitsFor) {
  connect_to(collector_.address());
  pollfd waiting[kMaxLinkPolls];
  EXPECT_EQ(link_->fill_poll(waiting, now_ms_, false), 0u);
  come_up();
  ASSERT_EQ(link_->fill_poll(waiting, now_ms_, false), 2u);
  EXPECT_EQ(waiting[0].fd, link_->control().socket.fd());
  EXPECT_EQ(waiting[1].fd, link_->data().socket.fd());
  EXPECT_EQ(waiting[0].events, POLLIN);
  EXPECT_EQ(waiting[1].events, POLLIN);
  ASSERT_EQ(link_->fill_poll(waiting, now_ms_, true), 2u);
  EXPECT_EQ(waiting[0].events, POLLIN);
  EXPECT_EQ(waiting[1].events, POLLIN | POLLOUT);
  const collect_wire_Bye bye = collect_wire_Bye_init_zero;
  ASSERT_TRUE(link_->control().out.push(FrameType::kBye, collect_wire_Bye_fields, &bye));
  ASSERT_EQ(link_->fill_poll(waiting, now_ms_, false), 2u);
  EXPECT_EQ(waiting[0].events, POLLIN | POLLOUT);
}

TEST_F(LinkTest, FramesThatNoCollectorSendsAreRefused) {
  connect_to(collector_.address());
  come_up();
  wire::Frame frame;
  EXPECT_FALSE(link_->next_frame(now_ms_, link_->control(), frame));
  // What goes before a page of 64 KiB: with it, it would never fit.
  PageHeader page{};
  page.raw_bytes = kPageBytes;
  page.record_count = kPageBytes / 32;
  uint8_t prefix[wire::kPagePrefixBytes];
  wire::encode_page_prefix(
      page, kPageBytes, [](Bytes of, uint32_t before) { return crc32c(of, before); }, prefix);
  control_.send_bytes(std::string(reinterpret_cast<char*>(prefix), sizeof prefix));
  pollfd waiting{link_->control().socket.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, 60'000), 1);
  ASSERT_TRUE(link_->read(now_ms_, link_->control()));
  EXPECT_FALSE(link_->next_frame(now_ms_, link_->control(), frame));
  EXPECT_FALSE(link_->is_up());
  const auto refuse = control_.expect<wire::Refuse>(FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
  EXPECT_EQ(refuse.reason(), "a collector does not send pages");
  EXPECT_TRUE(refuse.retry());
}

TEST_F(LinkTest, RefusesCollectorsOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const fakes::ForeignListener other(fakes::tcp4(INADDR_LOOPBACK, 0));
  const std::string address = "127.0.0.1:" + std::to_string(other.port());
  connect_to(address);
  step();
  for (int i = 0; i < 5000 && link_->rounds_failed() == 0; ++i) step();
  EXPECT_EQ(std::string(status()),
            address +
                " is served by uid 65534, another user: set COLLECT_TOKEN_FILE, or use the"
                " collector's Unix socket; trying again later");
  EXPECT_FALSE(is_trying());
  EXPECT_EQ(other.bytes(), 0u) << "something was sent";
}

// ---- listening

class ListeningLinkTest : public LinkTest {
 protected:
  static wire::Dial dial_of(wire::Channel channel, uint32_t least, uint32_t most) {
    wire::Dial dial;
    dial.set_channel(channel);
    dial.set_min_version(least);
    dial.set_max_version(most);
    return dial;
  }
  Peer connect() {
    Peer peer = Peer::dial_tcp(link_->listen_port());
    EXPECT_TRUE(peer.is_open());
    step();
    return peer;
  }
  wire::Refuse refusal(Peer& peer) {
    step();
    auto refuse = peer.expect<wire::Refuse>(FrameType::kRefuse);
    EXPECT_TRUE(peer.ends());
    return refuse;
  }
};

TEST_F(ListeningLinkTest, TurnsSilentPeersAwayAfterFiveSeconds) {
  listen();
  EXPECT_FALSE(link_->is_opening());
  Peer peer = connect();
  EXPECT_TRUE(link_->is_opening());
  step(4999);
  EXPECT_TRUE(link_->is_opening());
  step(1);
  EXPECT_FALSE(link_->is_opening());
  const wire::Refuse refuse = refusal(peer);
  EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
  EXPECT_EQ(refuse.reason(), "no Dial in time");
  EXPECT_TRUE(refuse.retry());
}

TEST_F(ListeningLinkTest, TurnsAwayPeersThatDoNotAnswerHello) {
  listen();
  Peer peer = connect();
  peer.send(FrameType::kDial, dial_of(wire::CHANNEL_DATA, 2, 2));
  step(1000);
  EXPECT_EQ(peer.expect<wire::Hello>(FrameType::kHello).channel(), wire::CHANNEL_DATA);
  step(3999);
  EXPECT_TRUE(link_->is_opening());
  step(1);
  EXPECT_EQ(refusal(peer).reason(), "no Challenge in time");
}

TEST_F(ListeningLinkTest, OneThatIsSilentLongestMakesRoom) {
  listen();
  std::vector<Peer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(connect());
    now_ms_ += 10;
  }
  Peer fifth = connect();
  EXPECT_TRUE(peers[0].ends());
  // The three others and the newcomer are still there.
  peers[0] = Peer();
  peers.push_back(std::move(fifth));
  for (size_t i = 1; i < peers.size(); ++i) {
    peers[i].send(FrameType::kDial, dial_of(wire::CHANNEL_CONTROL, 2, 2));
    step();
    EXPECT_EQ(peers[i].expect<wire::Hello>(FrameType::kHello).channel(), wire::CHANNEL_CONTROL);
  }
  pollfd waiting[kMaxLinkPolls];
  EXPECT_EQ(link_->fill_poll(waiting, now_ms_, false), 5u) << "the four, and the listener";
}

TEST_F(ListeningLinkTest, DialNamesAChannelAndAVersion) {
  listen();
  struct Case {
    wire::Dial dial;
    wire::RefuseCode code;
    const char* reason;
    bool retry;
  };
  const Case cases[] = {
      {dial_of(wire::CHANNEL_UNSPECIFIED, 2, 2), wire::REFUSE_PROTOCOL,
       "the first frame is not a Dial", true},
      {dial_of(static_cast<wire::Channel>(3), 2, 2), wire::REFUSE_PROTOCOL,
       "the first frame is not a Dial", true},
      {dial_of(wire::CHANNEL_CONTROL, 1, 1), wire::REFUSE_VERSION,
       "this agent speaks version 2 of the protocol only", false},
      {dial_of(wire::CHANNEL_CONTROL, 3, 3), wire::REFUSE_VERSION,
       "this agent speaks version 2 of the protocol only", false},
  };
  for (const Case& one : cases) {
    Peer peer = connect();
    peer.send(FrameType::kDial, one.dial);
    const wire::Refuse refuse = refusal(peer);
    EXPECT_EQ(refuse.code(), one.code);
    EXPECT_EQ(refuse.reason(), one.reason);
    EXPECT_EQ(refuse.retry(), one.retry);
  }
  for (const auto& [least, most] : {std::pair{1u, 2u}, {2u, 3u}, {2u, 2u}}) {
    Peer peer = connect();
    peer.send(FrameType::kDial, dial_of(wire::CHANNEL_DATA, least, most));
    step();
    EXPECT_EQ(peer.expect<wire::Hello>(FrameType::kHello).channel(), wire::CHANNEL_DATA);
  }
  Peer peer = connect();
  peer.send(FrameType::kHeartbeat, wire::Heartbeat());
  EXPECT_EQ(refusal(peer).reason(), "the first frame is not a Dial");
  Peer longer = connect();
  longer.send_frame(FrameType::kDial, std::string(kMaxDialBytes - 23, 'x'));
  EXPECT_EQ(refusal(longer).reason(), "the first frame is not a Dial");
}

TEST_F(ListeningLinkTest, BehindTheHelloComesAChallenge) {
  listen();
  const auto dialled = [&] {
    Peer peer = connect();
    peer.send(FrameType::kDial, dial_of(wire::CHANNEL_CONTROL, 2, 2));
    step();
    (void)peer.expect<wire::Hello>(FrameType::kHello);
    return peer;
  };
  Peer one = dialled();
  one.send(FrameType::kHeartbeat, wire::Heartbeat());
  wire::Refuse refuse = refusal(one);
  EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
  EXPECT_EQ(refuse.reason(), "not what a collector says before its Challenge");
  Peer two = dialled();
  two.send_frame(FrameType::kChallenge, std::string(kMaxDialBytes - 23, 'x'));
  EXPECT_EQ(refusal(two).reason(), "a Challenge is not as long as that");
  Peer three = dialled();
  three.send(FrameType::kChallenge, wire::Challenge());
  EXPECT_EQ(refusal(three).reason(), "the Challenge can't be read");
  // A refusal of the collector's own is the news.
  Peer four = dialled();
  wire::Refuse said;
  said.set_reason("not \x1b you");
  four.send(FrameType::kRefuse, said);
  step();
  EXPECT_TRUE(four.ends());
  EXPECT_EQ(std::string(status()), "refused by the collector: not ? you; trying again later");
}

TEST_F(ListeningLinkTest, ChannelThatIsTakenIsServed) {
  listen();
  std::vector<Peer> rivals;
  for (int i = 0; i < 2; ++i) {
    rivals.push_back(connect());
    rivals.back().send(FrameType::kDial, dial_of(wire::CHANNEL_CONTROL, 2, 2));
    step();
    const auto hello = rivals.back().expect<wire::Hello>(FrameType::kHello);
    // Both have their Hello before either has answered.
    if (i == 0) continue;
    rivals[1].send(FrameType::kChallenge, fakes::challenge_for(hello, "", true));
    step_until(ChannelStep::kProving, link_->control());
  }
  rivals[0].send(FrameType::kChallenge, fakes::challenge_for(wire::Hello(), "", true));
  wire::Refuse refuse = refusal(rivals[0]);
  EXPECT_EQ(refuse.code(), wire::REFUSE_DUPLICATE);
  EXPECT_EQ(refuse.reason(), "this process is served by a collector already");
  EXPECT_TRUE(refuse.retry());
  Peer third = connect();
  third.send(FrameType::kDial, dial_of(wire::CHANNEL_CONTROL, 2, 2));
  refuse = refusal(third);
  EXPECT_EQ(refuse.code(), wire::REFUSE_DUPLICATE);
  // One half alone is no link, and the other has ten seconds.
  step(9999);
  EXPECT_TRUE(is_trying());
  step(1);
  EXPECT_FALSE(is_trying());
  EXPECT_EQ(std::string(status()),
            "no link to the collector: the handshake took too long; listening for the next");
}

TEST_F(ListeningLinkTest, RefusesADialWithoutItsToken) {
  std::memcpy(settings_.token_file, "/nowhere", 9);
  listen();
  Peer peer = connect();
  peer.send(FrameType::kDial, dial_of(wire::CHANNEL_CONTROL, 2, 2));
  const wire::Refuse refuse = refusal(peer);
  EXPECT_EQ(refuse.code(), wire::REFUSE_TOKEN);
  EXPECT_EQ(refuse.reason(), kNoToken);
  EXPECT_TRUE(refuse.retry());
}

}  // namespace
}  // namespace collect::agent
