// Frames over one connection: in pieces, in bulk, up to the limits, and to the end.
#include "daemon/ingest/link/link.h"

#include <gmock/gmock.h>

#include "daemon/ingest/link/limits.h"
#include "tests/daemon/ingest/io_loop.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::FrameType;

wire::Heartbeat beat(uint64_t spooled) {
  wire::Heartbeat beat;
  beat.set_spooled_bytes(spooled);
  return beat;
}

std::vector<uint8_t> joined(std::initializer_list<std::vector<uint8_t>> parts) {
  std::vector<uint8_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class LinkTest : public testing::Test {
 protected:
  LinkTest() { begin({}); }
  void begin(std::vector<uint8_t> early) {
    std::tie(link_, other_) = loop_.link(std::move(early));
    owner_ = std::make_shared<HeardOwner>();
    link_->set_owner(owner_);
  }
  uint64_t spooled(size_t at) const {
    wire::Heartbeat beat;
    const auto& body = owner_->bodies.at(at);
    EXPECT_TRUE(beat.ParseFromArray(body.data(), static_cast<int>(body.size())));
    return beat.spooled_bytes();
  }
  bool is_open() { return link_->socket().is_open(); }
  // What the other side has received by now, and whether it has seen the end.
  std::vector<FrameType> received() {
    std::vector<FrameType> types;
    while (const auto frame = other_.receive(milliseconds{0})) types.push_back(frame->type);
    return types;
  }
  bool other_ended() { return other_.ends(milliseconds{0}); }

  IoLoop loop_;
  std::shared_ptr<Link> link_;
  FrameSocket other_;
  std::shared_ptr<HeardOwner> owner_;
};

TEST_F(LinkTest, FramesAreDeliveredHoweverTheyAreCut) {
  link_->read_control_frames();
  const auto one = fakes::frame_bytes(FrameType::kHeartbeat, beat(7));
  for (const uint8_t& byte : one) {
    EXPECT_THAT(owner_->types, IsEmpty());
    ASSERT_TRUE(other_.send_bytes({&byte, 1}));
    loop_.run();
  }
  ASSERT_THAT(owner_->types, ElementsAre(FrameType::kHeartbeat));
  EXPECT_EQ(spooled(0), 7u);
  const auto two = fakes::frame_bytes(FrameType::kHeartbeat, beat(8));
  const auto three = fakes::frame_bytes(FrameType::kHeartbeat, beat(9));
  const auto bulk = joined({two, three, one});
  ASSERT_TRUE(other_.send_bytes(Bytes(bulk).first(bulk.size() - 1)));
  loop_.run();
  ASSERT_EQ(owner_->types.size(), 3u);
  EXPECT_EQ(spooled(1), 8u);
  EXPECT_EQ(spooled(2), 9u);
  ASSERT_TRUE(other_.send_bytes(Bytes(bulk).last(1)));
  loop_.run();
  ASSERT_EQ(owner_->types.size(), 4u);
  EXPECT_EQ(spooled(3), 7u);
  EXPECT_EQ(link_->received_bytes(), one.size() + bulk.size());
  EXPECT_THAT(link_->unread(), IsEmpty());
}

TEST_F(LinkTest, LargestFrameFits) {
  link_->read_control_frames();
  std::vector<uint8_t> body(wire::kMaxControlBody, 0xA5);
  body.back() = 1;
  for (int round = 0; round < 2; ++round) {
    const auto frame = fakes::frame_bytes(FrameType::kCommandResult, Bytes(body));
    for (size_t at = 0; at < frame.size(); at += 5000) {
      ASSERT_TRUE(
          other_.send_bytes(Bytes(frame).subspan(at, std::min<size_t>(5000, frame.size() - at))));
      loop_.run();
    }
  }
  ASSERT_EQ(owner_->bodies.size(), 2u);
  EXPECT_EQ(owner_->bodies[0], body);
  EXPECT_EQ(owner_->bodies[1], body);
}

TEST_F(LinkTest, DeliversEarlierBytesFirst) {
  const auto one = fakes::frame_bytes(FrameType::kHeartbeat, beat(1));
  const auto two = fakes::frame_bytes(FrameType::kBye, wire::Bye());
  begin(joined({one, std::vector<uint8_t>(two.begin(), two.begin() + 10)}));
  EXPECT_EQ(link_->unread().size(), one.size() + 10);
  link_->read_control_frames();
  EXPECT_THAT(owner_->types, ElementsAre(FrameType::kHeartbeat));
  ASSERT_TRUE(other_.send_bytes(Bytes(two).subspan(10)));
  loop_.run();
  EXPECT_THAT(owner_->types, ElementsAre(FrameType::kHeartbeat, FrameType::kBye));
  EXPECT_EQ(link_->received_bytes(), two.size() - 10);
}

TEST_F(LinkTest, NextOwnerGetsTheUnreadBytes) {
  link_->read_control_frames();
  owner_->then = [](Link& link, const wire::Frame&) { link.set_owner(nullptr); };
  const auto one = fakes::frame_bytes(FrameType::kHeartbeat, beat(1));
  const auto rest = joined({fakes::frame_bytes(FrameType::kHeartbeat, beat(2)),
                            fakes::frame_bytes(FrameType::kHeartbeat, beat(3)),
                            {1, 2, 3}});
  ASSERT_TRUE(other_.send_bytes(joined({one, rest})));
  loop_.run();
  EXPECT_EQ(owner_->types.size(), 1u);
  EXPECT_EQ(link_->take_early(), rest);
  EXPECT_THAT(link_->take_early(), IsEmpty());
}

TEST_F(LinkTest, ReportsInvalidFramesWithTheirBytes) {
  link_->read_control_frames();
  const std::vector<uint8_t> bytes{'T', 'R', 'C', 0, 9};
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  EXPECT_THAT(owner_->bad, ElementsAre(wire::FrameError::kMagic));
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), link_->unread().begin(), link_->unread().end()));
  EXPECT_TRUE(link_->open());
  // It is not read on, unless the owner wants to see more.
  const std::vector<uint8_t> more{1};
  ASSERT_TRUE(other_.send_bytes(more));
  loop_.run();
  EXPECT_EQ(owner_->bad.size(), 1u);
  link_->read_more();
  loop_.run();
  EXPECT_EQ(owner_->bad.size(), 2u);
  EXPECT_EQ(link_->unread().size(), 6u);
}

TEST_F(LinkTest, ReportsTheEndAndItsReasonOnce) {
  link_->read_control_frames();
  other_.end_sending();
  loop_.run();
  EXPECT_THAT(owner_->ends, ElementsAre("closed by the peer"));
  EXPECT_FALSE(link_->open());
  EXPECT_FALSE(is_open());
  link_->fail("again");
  EXPECT_EQ(owner_->ends.size(), 1u);

  begin({});
  link_->read_control_frames();
  link_->send(FrameType::kHeartbeat, beat(1));
  loop_.run();
  other_.close();  // over bytes that it has not read
  loop_.run();
  EXPECT_THAT(owner_->ends, ElementsAre("Connection reset by peer"));
}

// A message that makes a frame of so many bytes.
wire::Refuse frame_of(size_t bytes) {
  wire::Refuse message;
  message.set_reason(std::string(bytes - sizeof(wire::FrameHeader) - 4, 'r'));
  EXPECT_EQ(sizeof(wire::FrameHeader) + message.ByteSizeLong(), bytes);
  return message;
}

TEST_F(LinkTest, QueuesUnreadFramesUpToALimit) {
  static_assert(kMaxSendQueueBytes == 1u << 20);
  const auto fill = [this] {
    for (int frame = 0; frame < 31; ++frame) link_->send(FrameType::kRefuse, frame_of(32 << 10));
    link_->send(FrameType::kRefuse, frame_of(32 << 10));
    EXPECT_TRUE(link_->open());
  };
  fill();
  EXPECT_EQ(link_->sent_frames(), 32u);
  size_t came = 0;
  EXPECT_TRUE(loop_.run_until([&] { return (came += received().size()) == 32; }));
  loop_.run();
  fill();  // there is room again, for as much
  link_->send(FrameType::kHeartbeat, wire::Heartbeat());
  EXPECT_THAT(owner_->ends, ElementsAre("does not read what it is sent"));
  EXPECT_FALSE(link_->open());
  EXPECT_EQ(link_->sent_frames(), 64u);
  link_->send(FrameType::kHeartbeat, wire::Heartbeat());
  EXPECT_EQ(link_->sent_frames(), 64u) << "of a link that is over";
}

TEST_F(LinkTest, RefusalIsReadBehindWhatWasSentBefore) {
  link_->read_control_frames();
  const std::vector<uint8_t> unread(10'000, 7);
  ASSERT_TRUE(other_.send_bytes(unread));
  const std::weak_ptr<LinkOwner> owner = owner_;
  link_->send(FrameType::kHeartbeat, beat(5));
  std::string reason(300, 'x');
  for (size_t at = 0; at < reason.size(); ++at) reason[at] = static_cast<char>('a' + at % 26);
  link_->refuse(wire::REFUSE_LIMIT, reason, true);
  EXPECT_FALSE(link_->open());
  owner_.reset();
  EXPECT_TRUE(owner.expired()) << "it hears nothing more";
  loop_.run();
  EXPECT_TRUE(other_.receive_type(FrameType::kHeartbeat).has_value());
  const auto frame = other_.receive_type(FrameType::kRefuse);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
  EXPECT_TRUE(frame->parsed<wire::Refuse>().retry());
  EXPECT_EQ(frame->parsed<wire::Refuse>().reason(), reason.substr(0, 255));
  EXPECT_TRUE(other_ended());
  EXPECT_TRUE(is_open()) << "until the other side has read it";
  other_.close();
  EXPECT_TRUE(loop_.run_until([this] { return !is_open(); }));
}

TEST_F(LinkTest, RefusalWithoutRoomIsNotReported) {
  for (int frame = 0; frame < 32; ++frame) link_->send(FrameType::kRefuse, frame_of(32 << 10));
  link_->refuse(wire::REFUSE_LIMIT, "no room", true);
  EXPECT_THAT(owner_->ends, IsEmpty());
  EXPECT_FALSE(link_->open());
}

TEST_F(LinkTest, ClosesPeersThatStayAfterTheLastFrame) {
  const std::weak_ptr<LinkOwner> owner = owner_;
  link_->send(FrameType::kBye, wire::Bye());
  link_->close_after_sending();
  owner_.reset();
  EXPECT_TRUE(owner.expired());
  loop_.run();
  EXPECT_THAT(received(), ElementsAre(FrameType::kBye));
  EXPECT_TRUE(other_ended());
  EXPECT_TRUE(is_open());
  EXPECT_TRUE(loop_.run_until([this] { return !is_open(); }));
}

// No one keeps a connection by sending on without an end.
TEST_F(LinkTest, SoManyBytesAreTakenAfterARefusal) {
  link_->refuse(wire::REFUSE_LIMIT, "over", false);
  const std::vector<uint8_t> bytes(64 << 10, 1);
  size_t sent = 0;
  while (is_open()) {
    const ssize_t count =
        ::send(other_.handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<size_t>(count);
    loop_.run();
  }
  EXPECT_LT(sent, 2 * kLingerBytes);
}

TEST_F(LinkTest, ClosedItLetsGoOfEverything) {
  link_->read_control_frames();
  auto lease = std::make_shared<int>(1);
  link_->hold(lease);
  const std::weak_ptr<LinkOwner> owner = owner_;
  owner_.reset();
  link_->close();
  EXPECT_EQ(lease.use_count(), 1);
  EXPECT_TRUE(owner.expired());
  EXPECT_TRUE(other_ended());
  loop_.run();
  EXPECT_EQ(link_.use_count(), 1);
  link_->close();
  link_->refuse(wire::REFUSE_LIMIT, "closed", true);
  link_->close_after_sending();
  loop_.run();
  EXPECT_EQ(link_.use_count(), 1) << "nothing waits for a link that is over";
}

TEST_F(LinkTest, ReleasedDescriptorLivesOn) {
  const std::weak_ptr<LinkOwner> owner = owner_;
  owner_.reset();
  const int handle = link_->release();
  EXPECT_TRUE(owner.expired());
  EXPECT_FALSE(link_->open());
  link_.reset();
  FrameSocket own(handle);
  ASSERT_TRUE(own.send(FrameType::kHeartbeat, beat(3)));
  EXPECT_TRUE(other_.receive_type(FrameType::kHeartbeat, milliseconds{0}).has_value());
}

}  // namespace
}  // namespace collect::ingest
