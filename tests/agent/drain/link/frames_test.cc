// Which frames the agent takes for the protocol's, by WIRE.md "Frames", and the buffers that they
// go through.
#include "agent/drain/link/frames.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/wire.pb.h"
#include "tests/agent/scripted_collector.h"

namespace collect::agent {
namespace {

// A message with a text of so many bytes, 31 at most, and nothing else.
collect_wire_RecordingEnd end_of_bytes(size_t reason_bytes) {
  collect_wire_RecordingEnd end = collect_wire_RecordingEnd_init_zero;
  std::fill_n(end.reason, reason_bytes, 'r');
  return end;
}

size_t frame_of(MutableBytes out, size_t reason_bytes) {
  const collect_wire_RecordingEnd end = end_of_bytes(reason_bytes);
  return encode_frame(out, wire::FrameType::kRecordingEnd, collect_wire_RecordingEnd_fields, &end);
}

TEST(FramesTest, FrameThatDoesNotFitIsNotBegun) {
  std::vector<uint8_t> room(200);
  const size_t bytes = frame_of(room, 20);
  EXPECT_EQ(bytes, sizeof(wire::FrameHeader) + 22) << "the tag, the length and the text";
  EXPECT_EQ(frame_of(MutableBytes(room.data(), bytes), 20), bytes);
  EXPECT_EQ(frame_of(MutableBytes(room.data(), bytes - 1), 20), 0u);
  EXPECT_EQ(frame_of(MutableBytes(room.data(), sizeof(wire::FrameHeader)), 0),
            sizeof(wire::FrameHeader));
  EXPECT_EQ(frame_of(MutableBytes(room.data(), sizeof(wire::FrameHeader) - 1), 0), 0u);
}

TEST(FramesTest, MessageIsReadOrItIsNot) {
  collect_wire_Bye bye = collect_wire_Bye_init_zero;
  wire::Bye said;
  said.set_reason("exit");
  said.set_will_return(true);
  const std::string body = said.SerializeAsString();
  ASSERT_TRUE(decode_message(Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size()),
                             collect_wire_Bye_fields, &bye));
  EXPECT_STREQ(bye.reason, "exit");
  EXPECT_TRUE(bye.will_return);
  const uint8_t cut[] = {body.empty() ? uint8_t{0} : static_cast<uint8_t>(body[0]), 200};
  EXPECT_FALSE(decode_message(cut, collect_wire_Bye_fields, &bye));
}

TEST(FramesTest, SendBufferTakesFramesUntilItIsFull) {
  static SendBuffer buffer;
  buffer.clear();
  EXPECT_TRUE(buffer.is_empty());
  EXPECT_EQ(buffer.room(), kFrameBufferBytes);
  const collect_wire_RecordingEnd end = end_of_bytes(20);
  const auto push = [&] {
    return buffer.push(wire::FrameType::kRecordingEnd, collect_wire_RecordingEnd_fields, &end);
  };
  const size_t frame = sizeof(wire::FrameHeader) + 22;
  size_t pushed = 0;
  while (buffer.room() >= frame) {
    ASSERT_TRUE(push());
    pushed += frame;
    ASSERT_EQ(buffer.room(), kFrameBufferBytes - pushed);
    ASSERT_EQ(buffer.unsent().iov_len, pushed);
  }
  const void* const first = buffer.unsent().iov_base;
  EXPECT_FALSE(push());
  EXPECT_EQ(buffer.unsent().iov_len, pushed) << "a frame that does not fit leaves nothing behind";
  // What was sent is no room yet: the frames behind it stay where they are.
  buffer.sent(frame + 1);
  EXPECT_EQ(buffer.unsent().iov_base, static_cast<const uint8_t*>(first) + frame + 1);
  EXPECT_EQ(buffer.unsent().iov_len, pushed - frame - 1);
  EXPECT_FALSE(push());
  EXPECT_FALSE(buffer.is_empty());
  buffer.sent(pushed - frame - 1);
  EXPECT_TRUE(buffer.is_empty());
  EXPECT_EQ(buffer.room(), kFrameBufferBytes);
  EXPECT_TRUE(push());
  EXPECT_EQ(buffer.unsent().iov_base, first);
}

// A connection of the agent's own kind of socket to one of the test's.
class FrameSocketTest : public testing::Test {
 protected:
  FrameSocketTest() {
    AddressList list;
    const std::string name = "frames_test_" + std::to_string(getpid());
    EXPECT_EQ(resolve_listen(("abstract:" + name).c_str(), list), nullptr);
    EXPECT_EQ(listener_.listen(list.items[0]), 0);
    peer = Peer::dial_unix(std::string(1, '\0') + name);
    EXPECT_EQ(listener_.accept(ours, false), 0);
  }
  ~FrameSocketTest() override {
    ours.close();
    listener_.close();
  }

  Socket ours;
  Peer peer;

 private:
  Socket listener_;
};

TEST_F(FrameSocketTest, FlushGoesAsFarAsTheSocketTakesIt) {
  static SendBuffer buffer;
  buffer.clear();
  EXPECT_EQ(buffer.flush(ours), IoStatus::kDone) << "nothing to send";
  const collect_wire_RecordingEnd end = end_of_bytes(30);
  uint64_t frames = 0;
  IoStatus status = IoStatus::kDone;
  while (status == IoStatus::kDone && frames < 10'000'000) {
    while (buffer.push(wire::FrameType::kRecordingEnd, collect_wire_RecordingEnd_fields, &end)) {
      ++frames;
    }
    status = buffer.flush(ours);
    EXPECT_EQ(buffer.is_empty(), status == IoStatus::kDone);
  }
  EXPECT_EQ(status, IoStatus::kAgain);
  uint64_t came = 0;
  while (came < frames) {
    const auto got = peer.expect<wire::RecordingEnd>(wire::FrameType::kRecordingEnd);
    ASSERT_EQ(got.reason(), std::string(30, 'r'));
    ++came;
    if (!buffer.is_empty()) (void)buffer.flush(ours);
  }
  EXPECT_TRUE(buffer.is_empty());
  peer.close();
  ASSERT_TRUE(buffer.push(wire::FrameType::kRecordingEnd, collect_wire_RecordingEnd_fields, &end));
  EXPECT_EQ(buffer.flush(ours), IoStatus::kEnd);
}

// Frames of all sizes, many times the buffer, in pieces that keep to no frame.
TEST_F(FrameSocketTest, ReceiveBufferHandsOutEveryFrame) {
  static ReceiveBuffer buffer;
  buffer.clear();
  std::string stream;
  std::vector<std::string> bodies;
  for (size_t i = 0; stream.size() < 3 * kFrameBufferBytes; ++i) {
    const size_t bytes = i % 5 == 4 ? wire::kMaxControlBody - i : i * 997 % 5000;
    bodies.push_back(std::string(bytes, static_cast<char>('a' + i % 26)));
    uint8_t header[sizeof(wire::FrameHeader)];
    wire::encode_control_header(
        wire::FrameType::kHeartbeat,
        Bytes(reinterpret_cast<const uint8_t*>(bodies.back().data()), bytes),
        [](Bytes of, uint32_t before) { return crc32c(of, before); }, header);
    stream.append(reinterpret_cast<const char*>(header), sizeof header).append(bodies.back());
  }
  size_t sent = 0;
  size_t taken = 0;
  EXPECT_EQ(buffer.fill(ours), IoStatus::kAgain) << "nothing has come";
  for (int round = 0; taken < bodies.size() && round < 100'000; ++round) {
    const size_t piece = std::min<size_t>(stream.size() - sent, 7777);
    peer.send_bytes(stream.substr(sent, piece));
    sent += piece;
    while (buffer.fill(ours) == IoStatus::kDone) {
      wire::Frame frame;
      while (buffer.next(frame).status == wire::DecodeStatus::kFrame) {
        ASSERT_LT(taken, bodies.size());
        ASSERT_EQ(std::string(frame.body.begin(), frame.body.end()), bodies[taken]);
        buffer.consume(frame);
        ++taken;
      }
    }
  }
  EXPECT_EQ(taken, bodies.size());
  EXPECT_TRUE(buffer.unread().empty());
  peer.close();
  EXPECT_EQ(buffer.fill(ours), IoStatus::kEnd);
}

TEST_F(FrameSocketTest, BufferTakesOverWhatAnotherHolds) {
  static ReceiveBuffer buffer;
  buffer.clear();
  const std::vector<uint8_t> bytes = {1, 2, 3};
  buffer.take(bytes);
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), buffer.unread().begin(), buffer.unread().end()));
  buffer.take({});
  EXPECT_TRUE(buffer.unread().empty());
  const std::vector<uint8_t> whole(kFrameBufferBytes, 7);
  buffer.take(whole);
  EXPECT_EQ(buffer.unread().size(), kFrameBufferBytes);
  EXPECT_EQ(buffer.unread().back(), 7);
  buffer.take(std::vector<uint8_t>(kFrameBufferBytes + 1, 8));
  EXPECT_TRUE(buffer.unread().empty());
}

TEST_F(FrameSocketTest, TurnsPeersAwayWithAReason) {
  const std::string reason(1000, 'w');
  turn_away(ours, collect_wire_RefuseCode_REFUSE_LIMIT, reason.c_str(), true);
  EXPECT_FALSE(ours.is_open());
  const auto refuse = peer.expect<wire::Refuse>(wire::FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_LIMIT);
  EXPECT_TRUE(refuse.retry());
  EXPECT_EQ(refuse.reason(), std::string(sizeof(collect_wire_Refuse{}.reason) - 1, 'w'));
  EXPECT_TRUE(peer.ends());
}

TEST_F(FrameSocketTest, ForbidsRetryWhenTurningAwayForGood) {
  turn_away(ours, collect_wire_RefuseCode_REFUSE_VERSION, "old", false);
  const auto refuse = peer.expect<wire::Refuse>(wire::FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_VERSION);
  EXPECT_FALSE(refuse.retry());
  EXPECT_EQ(refuse.reason(), "old");
}

}  // namespace
}  // namespace collect::agent
