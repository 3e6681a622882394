#include "proto/wire/frame_encoder.h"

#include <gtest/gtest.h>

#include "tests/proto/wire/documented_bytes.h"
#include "tests/proto/wire/frame_bytes.h"

namespace collect::wire {
namespace {

ByteVector example_page() {
  PageHeader page{};
  page.stream_id = 7;
  page.first_seq = 41;
  page.record_count = 1;
  page.lost_reasons = kLostRingFull;
  page.lost_total = 3;
  page.lost_first_ns = 900;
  page.lost_last_ns = 950;
  page.first_ns = page.last_ns = 1000;
  ByteVector record(32);
  store_le<uint64_t>(record.data(), 1000);
  store_le<uint64_t>(record.data() + 8, 0x100000040);
  store_le<uint64_t>(record.data() + 16, UINT64_MAX);
  record[24] = 1;
  return page_frame(page, record);
}

TEST(FrameEncoder, MakesTheBytesOfTheDocument) {
  const ByteVector bye = control_frame(FrameType::kBye,
                                       "\x0a\x04"
                                       "exit");
  const ByteVector page = example_page();
  ASSERT_EQ(bye.size(), 30u);
  ASSERT_EQ(page.size(), 128u);
  ByteVector both = bye;
  both.insert(both.end(), page.begin(), page.end());
  // They were computed by a bit-by-bit CRC program in another language.
  EXPECT_EQ(both, documented_bytes("Worked example"));
}

TEST(FrameEncoder, EmptyBodyIsAHeaderAlone) {
  // Python, bit by bit: type 37, no body; CRC of nothing is 0.
  const ByteVector expected = {0x43, 0x4c, 0x57, 0x31, 0x25, 0, 0, 0, 0,    0,    0,    0,
                               0,    0,    0,    0,    0,    0, 0, 0, 0x01, 0x17, 0xa0, 0x84};
  EXPECT_EQ(control_frame(FrameType::kHeartbeat, ""), expected);
}

}  // namespace
}  // namespace collect::wire
