// What a refused connection receives: frames of RFC 9113, headers of RFC 7541, and the
// trailers of gRPC's protocol over HTTP/2.
#include "daemon/control/relay/refusal_answer.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/daemon/control/http2_frames.h"

namespace collect::control {
namespace {

const std::string kAck = frame(4, 1, 0);  // SETTINGS, ACK

std::string call(uint32_t stream) {
  return frame(1, 4, stream, 30);  // HEADERS, END_HEADERS; what they say is not read
}

bool answer(RefusalAnswer& refusal, const std::string& said, std::string& out) {
  return refusal.answer(bytes_of(said), out);
}

std::string literal(const std::string& name, const std::string& value_with_length) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + value_with_length;
}

TEST(RefusalAnswerTest, EachCallIsAnsweredWithTheReason) {
  RefusalAnswer refusal("no: 100%");
  EXPECT_EQ(RefusalAnswer::greeting(), frame(4, 0, 0));
  std::string out;
  ASSERT_TRUE(answer(refusal, kPreface + frame(4, 0, 0), out));
  EXPECT_EQ(out, kAck);
  out.clear();
  ASSERT_TRUE(answer(refusal, frame(4, 1, 0) + frame(6, 0, 0), out));
  EXPECT_EQ(out, "") << "an ACK of ours, and a ping";
  const std::string block = "\x88" +
                            literal("content-type",
                                    "\x10"
                                    "application/grpc") +
                            literal("grpc-status",
                                    "\1"
                                    "7") +
                            literal("grpc-message",
                                    "\x0a"
                                    "no: 100%25");
  ASSERT_TRUE(answer(refusal, call(5), out));
  // HEADERS with END_STREAM and END_HEADERS, on the stream of the call.
  EXPECT_EQ(out, std::string("\0\0", 2) + static_cast<char>(block.size()) + "\1\5" +
                     std::string("\0\0\0\5", 4) + block);
}

// RFC 7541, 5.1: a prefix of seven bits, what is beyond in groups of seven.
TEST(RefusalAnswerTest, LongReasonsHaveALengthOfSeveralBytes) {
  const std::pair<size_t, std::string> lengths[] = {{126, "\x7e"},
                                                    {127, std::string("\x7f\0", 2)},
                                                    {254, "\x7f\x7f"},
                                                    {255, "\x7f\x80\x01"},
                                                    {300, "\x7f\xad\x01"}};
  for (const auto& [bytes, length] : lengths) {
    const std::string reason(bytes, 'x');
    RefusalAnswer refusal(reason);
    std::string out;
    ASSERT_TRUE(answer(refusal, kPreface + call(1), out));
    const std::string last = literal("grpc-message", length + reason);
    EXPECT_TRUE(out.ends_with(last)) << bytes;
    const size_t block = out.size() - 9;
    EXPECT_EQ(static_cast<uint8_t>(out[1]), block >> 8);
    EXPECT_EQ(static_cast<uint8_t>(out[2]), block & 0xff);
  }
}

TEST(RefusalAnswerTest, BytesThatAreNotPlainAreEscaped) {
  RefusalAnswer refusal("\x1f \x7e\x7f\xe2");
  std::string out;
  ASSERT_TRUE(answer(refusal, kPreface + call(1), out));
  EXPECT_TRUE(out.ends_with("%1F ~%7F%E2")) << out;
}

TEST(RefusalAnswerTest, SixteenCallsAreAnswered) {
  RefusalAnswer refusal("no");
  std::string out;
  ASSERT_TRUE(answer(refusal, kPreface + call(1), out));
  const size_t one = out.size();
  for (int at = 2; at <= 16; ++at) EXPECT_TRUE(answer(refusal, call(1), out)) << at;
  EXPECT_EQ(out.size(), 16 * one);
  EXPECT_FALSE(answer(refusal, call(1), out));
  EXPECT_EQ(out.size(), 16 * one);
}

TEST(RefusalAnswerTest, TwoHundredAndFiftySixFramesAreRead) {
  RefusalAnswer refusal("no");
  std::string out;
  ASSERT_TRUE(answer(refusal, kPreface, out));
  for (int at = 1; at <= 256; ++at) {
    EXPECT_TRUE(answer(refusal, frame(4, 0, 0), out)) << at;
  }
  EXPECT_EQ(out.size(), 256 * kAck.size());
  EXPECT_FALSE(answer(refusal, frame(4, 0, 0), out));
  EXPECT_EQ(out.size(), 256 * kAck.size());
}

TEST(RefusalAnswerTest, DoesNotAnswerOtherProtocols) {
  RefusalAnswer refusal("no");
  std::string out;
  EXPECT_FALSE(answer(refusal, "GET / HTTP/1.1\r\n\r\n", out));
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace collect::control
