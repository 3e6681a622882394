// The numbers within frames of HTTP/2 (RFC 9113, 4.1), to their last bit, on both sides.
#include <gtest/gtest.h>

#include "daemon/control/relay/http2_meter.h"
#include "daemon/control/relay/refusal_answer.h"
#include "tests/daemon/control/http2_frames.h"

namespace collect::control {
namespace {

// The nine bytes of a frame's header, written out.
std::string header(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(length >> shift & 0xff);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(stream >> shift & 0xff);
  return bytes;
}

TEST(FrameBytesTest, RefusalIsOnTheStreamOfItsCall) {
  for (const uint32_t stream : {1u, 0xffu, 0x101u, 0x10001u, 0x1fffffu, 0x1000001u, 0x7fffffffu}) {
    RefusalAnswer refusal("no");
    std::string out;
    ASSERT_TRUE(refusal.answer(bytes_of(kPreface + header(0, 1, 4, stream)), out));
    ASSERT_GT(out.size(), 9u);
    EXPECT_EQ(out.substr(0, 9),
              header(static_cast<uint32_t>(out.size() - 9), 1, 0x1 | 0x4, stream));
  }
}

TEST(FrameBytesTest, LongRefusalHasItsLength) {
  for (const size_t bytes : {200, 255, 256, 16'000, 65'535, 65'536, 70'000}) {
    RefusalAnswer refusal(std::string(bytes, 'x'));
    std::string out;
    ASSERT_TRUE(refusal.answer(bytes_of(kPreface + header(0, 1, 4, 1)), out));
    EXPECT_EQ(out.substr(0, 9), header(static_cast<uint32_t>(out.size() - 9), 1, 0x1 | 0x4, 1));
  }
}

// What is in a frame is passed over, however long it is: no byte of it is taken for a frame.
TEST(FrameBytesTest, PayloadsArePassedOver) {
  for (const uint32_t length : {1u, 255u, 256u, 65'535u, 65'536u, 0x1ffffu}) {
    Http2Meter meter;
    uint32_t costs = 0;
    const std::string payload(length, '\x01');  // HEADERS, were it a frame's type
    EXPECT_EQ(
        meter.from_client(
            bytes_of(kPreface + header(length, 0, 0, 1) + payload + header(0, 6, 0, 0)), costs),
        "");
    EXPECT_EQ(costs, 1u) << length;  // the PING behind it
    EXPECT_EQ(meter.open_streams(), 0u) << length;
  }
}

// Streams are distinguished by all 31 bits; the one bit above them says nothing.
TEST(FrameBytesTest, StreamsHaveThirtyOneBits) {
  Http2Meter meter;
  uint32_t costs = 0;
  const uint32_t streams[] = {1u, 0x101u, 0x10001u, 0x1000001u, 0x7fffffffu};
  std::string begun = kPreface, ended;
  for (const uint32_t stream : streams) begun += header(0, 1, 4, stream | 0x80000000u);
  EXPECT_EQ(meter.from_client(bytes_of(begun), costs), "");
  EXPECT_EQ(meter.open_streams(), std::size(streams));
  size_t left = std::size(streams);
  for (const uint32_t stream : streams) {
    meter.from_server(bytes_of(header(0, 3, 0, stream)));
    EXPECT_EQ(meter.open_streams(), --left);
  }
}

// Only HEADERS and DATA can be the last of a stream: the same flag of another frame is an
// acknowledgement.
TEST(FrameBytesTest, OnlyTheEndOfAStreamEndsIt) {
  Http2Meter meter;
  uint32_t costs = 0;
  EXPECT_EQ(meter.from_client(bytes_of(kPreface + header(0, 1, 4, 1)), costs), "");
  for (const uint8_t type : std::initializer_list<uint8_t>{2, 4, 5, 6, 7, 8, 9, 10}) {
    meter.from_server(bytes_of(header(0, type, 0xff, 1)));
  }
  meter.from_server(bytes_of(header(0, 0, 0xfe, 1) + header(0, 1, 0xfe, 1)));
  EXPECT_EQ(meter.open_streams(), 1u);
  meter.from_server(bytes_of(header(0, 0, 1, 1)));
  EXPECT_EQ(meter.open_streams(), 0u);
}

// An empty CONTINUATION counts as the nine bytes that it takes.
TEST(FrameBytesTest, EmptyContinuationsCountAsTheirHeaders) {
  Http2Meter meter;
  uint32_t costs = 0;
  std::string most = kPreface + header(0, 1, 0, 1);
  for (size_t i = 0; i < kMaxHeaderBlockBytes / 9; ++i) most += header(0, 9, 0, 1);
  EXPECT_EQ(meter.from_client(bytes_of(most), costs), "");
  EXPECT_NE(meter.from_client(bytes_of(header(0, 9, 0, 1)), costs), "");
}

}  // namespace
}  // namespace collect::control
