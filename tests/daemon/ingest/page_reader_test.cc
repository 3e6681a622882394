// One data channel read by hand: what reaches the sink, in which pieces, and when it stands still.
#include "daemon/ingest/page_reader.h"

#include <gmock/gmock.h>

#include "daemon/ingest/limits.h"
#include "daemon/ingest/page_unpacker.h"
#include "formats/core/crc32.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/fakes/fake_agent.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using fakes::index_events;
using fakes::index_page_header;
using testing::ElementsAre;
using testing::IsEmpty;
using wire::FrameType;

class HeardSink final : public PageSink {
 public:
  bool wants = true;
  bool goes_on = true;
  bool keeps = true;
  std::vector<PageBatch> batches;
  std::vector<const uint8_t*> addresses;  // of the first page of each batch
  std::vector<FrameType> frames;
  std::vector<wire::FrameError> bad;
  std::vector<std::string> order;  // "3 pages", "frame"

  bool on_pages(PageBatch batch) override {
    order.push_back(std::to_string(batch.pages.size()) + " pages");
    addresses.push_back(batch.pages.front().bytes.data());
    if (keeps) batches.push_back(std::move(batch));
    return goes_on;
  }
  bool on_data_frame(const wire::Frame& frame) override {
    frames.push_back(frame.type);
    order.push_back("frame");
    return goes_on;
  }
  void on_bad_data(wire::FrameError error) override { bad.push_back(error); }
  bool wants_more() override {
    ++asked;
    return wants;
  }
  int asked = 0;  // whether it wants more
  // Of all the pages, one behind the other.
  std::vector<uint8_t> records() const {
    std::vector<uint8_t> all;
    for (const PageBatch& batch : batches) {
      for (const Page& page : batch.pages) {
        all.insert(all.end(), page.bytes.begin(), page.bytes.end());
      }
    }
    return all;
  }
};

class PageReaderTest : public testing::Test {
 protected:
  PageReaderTest() { begin(8, {}); }
  ~PageReaderTest() override { reader_->stop(); }
  void begin(size_t buffers, std::vector<uint8_t> early) {
    if (reader_) reader_->stop();
    pool_ = std::make_shared<BufferPool>(buffers);
    std::tie(link_, other_) = loop_.link(std::move(early));
    owner_ = std::make_shared<HeardOwner>();
    link_->set_owner(owner_);
    sink_ = std::make_shared<HeardSink>();
    reader_ = std::make_shared<PageReader>(link_, sink_, pool_);
  }
  static std::vector<uint8_t> page(uint64_t first, uint32_t count) {
    return fakes::page_frame_bytes(index_page_header(1, first, count), index_events(first, count));
  }
  static void add(std::vector<uint8_t>& all, const std::vector<uint8_t>& frame) {
    all.insert(all.end(), frame.begin(), frame.end());
  }
  void send(Bytes bytes) {
    while (!bytes.empty()) {  // as much as there is room for, read by the loop in between
      const ssize_t count = ::send(other_.handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
      loop_.run();
    }
  }
  static std::chrono::steady_clock::time_point in(milliseconds later) {
    return std::chrono::steady_clock::now() + later;
  }

  IoLoop loop_;
  std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<Link> link_;
  FrameSocket other_;
  std::shared_ptr<HeardOwner> owner_;
  std::shared_ptr<HeardSink> sink_;
  std::shared_ptr<PageReader> reader_;
};

const auto kClose = fakes::frame_bytes(FrameType::kStreamClose, wire::StreamClose());

TEST_F(PageReaderTest, PagesThatCameTogetherLeaveTogetherInOrder) {
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, page(10, 10));
  add(bytes, page(20, 10));
  add(bytes, kClose);
  add(bytes, page(30, 5));
  reader_->start();
  send(bytes);
  EXPECT_THAT(sink_->order, ElementsAre("3 pages", "frame", "1 pages"));
  EXPECT_EQ(sink_->records(), index_events(0, 35));
  EXPECT_EQ(sink_->batches[0].bytes, 30u * 32);
  EXPECT_EQ(sink_->batches[0].pages[1].first_seq, 10u);
  EXPECT_THAT(sink_->frames, ElementsAre(FrameType::kStreamClose));
  EXPECT_EQ(reader_->received_bytes(), bytes.size());
}

TEST_F(PageReaderTest, BytesReadBeforeAreDecodedWithoutTheSocket) {
  std::vector<uint8_t> early = page(0, 10);
  add(early, kClose);
  begin(8, early);
  reader_->start();
  EXPECT_THAT(sink_->order, IsEmpty()) << "not from within";
  loop_.run();
  EXPECT_THAT(sink_->order, ElementsAre("1 pages", "frame"));
  EXPECT_EQ(reader_->received_bytes(), 0u);
}

// Some frames stand across the ends of buffers; writers hold all of them until the end.
TEST_F(PageReaderTest, AllOfALongStreamIsThere) {
  begin(16, {});
  std::vector<uint8_t> bytes;
  constexpr uint32_t kPage = 3001;
  uint64_t next = 0;
  while (bytes.size() < 5 * kReadBufferBytes) {
    add(bytes, page(next, kPage));
    next += kPage;
  }
  reader_->start();
  send(bytes);
  EXPECT_TRUE(sink_->records() == index_events(0, static_cast<uint32_t>(next)));
  EXPECT_GE(pool_->in_use(), 5u);
  EXPECT_EQ(reader_->received_bytes(), bytes.size());
}

TEST_F(PageReaderTest, AFrameAsLongAsTheyMayBeFits) {
  std::vector<uint8_t> bytes = page(0, 100);
  add(bytes, page(100, wire::kMaxPageBytes / 32));
  reader_->start();
  send(bytes);
  EXPECT_TRUE(sink_->records() == index_events(0, 100 + wire::kMaxPageBytes / 32));
}

TEST_F(PageReaderTest, WhatAWriterHoldsIsNotOverwritten) {
  reader_->start();
  for (uint64_t at = 0; at < 100; at += 10) send(page(at, 10));
  EXPECT_EQ(sink_->batches.size(), 10u);
  EXPECT_EQ(sink_->records(), index_events(0, 100));
  EXPECT_EQ(pool_->in_use(), 1u);
}

// While it is still in the processor's cache.
TEST_F(PageReaderTest, WhatNobodyHoldsIsUsedAgainFromItsFront) {
  reader_->start();
  sink_->keeps = false;
  send(page(0, 10));
  send(page(10, 10));
  ASSERT_EQ(sink_->addresses.size(), 2u);
  EXPECT_EQ(sink_->addresses[0], sink_->addresses[1]);
  // Not while a frame has begun there.
  const auto whole = page(20, 10);
  send(Bytes(whole).first(40));
  sink_->keeps = true;
  send(Bytes(whole).subspan(40));
  EXPECT_EQ(sink_->records(), index_events(20, 10));
}

TEST_F(PageReaderTest, StandsStillUntilTheSinkWantsMore) {
  reader_->start();
  loop_.run();
  sink_->wants = false;
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  loop_.run();
  EXPECT_TRUE(reader_->held());
  EXPECT_THAT(sink_->batches, IsEmpty());
  EXPECT_EQ(reader_->received_bytes(), 0u);
  sink_->wants = true;
  loop_.run();
  EXPECT_THAT(sink_->batches, IsEmpty());
  reader_->resume();
  loop_.run();
  EXPECT_FALSE(reader_->held());
  EXPECT_EQ(sink_->records(), index_events(0, 10));
  reader_->resume();  // nothing held it
  loop_.run();
  EXPECT_EQ(sink_->batches.size(), 1u);
}

TEST_F(PageReaderTest, WaitsForABuffer) {
  begin(1, {});
  BufferRef taken = pool_->acquire();
  reader_->start();
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  loop_.run();
  EXPECT_THAT(sink_->batches, IsEmpty());
  EXPECT_FALSE(reader_->held());
  taken.reset();
  loop_.run();
  EXPECT_EQ(sink_->records(), index_events(0, 10));
}

TEST_F(PageReaderTest, WhereBuffersAreScarceAnIdleChannelHoldsNone) {
  begin(1, {});
  reader_->start();
  const auto whole = page(0, 10);
  send(Bytes(whole).first(100));
  EXPECT_EQ(pool_->in_use(), 0u) << "the half frame is parked";
  send(Bytes(whole).subspan(100));
  EXPECT_EQ(sink_->records(), index_events(0, 10));
}

TEST_F(PageReaderTest, AnIdleChannelGivesItsBufferBackAfterAMoment) {
  reader_->start();
  const auto whole = page(0, 10);
  send(Bytes(whole).first(100));
  EXPECT_EQ(pool_->in_use(), 1u);
  EXPECT_TRUE(reader_->check_idle(std::chrono::steady_clock::now() - milliseconds{1}));
  EXPECT_EQ(pool_->in_use(), 1u);
  EXPECT_TRUE(reader_->check_idle(in(kSweepInterval + milliseconds{1})));
  EXPECT_EQ(pool_->in_use(), 0u);
  send(Bytes(whole).subspan(100));
  EXPECT_EQ(sink_->records(), index_events(0, 10));
}

TEST_F(PageReaderTest, AFrameThatStandsStillIsNotWaitedForForEver) {
  reader_->start();
  EXPECT_TRUE(reader_->check_idle(in(2 * kFrameStall))) << "nothing has begun";
  const auto whole = page(0, 10);
  send(Bytes(whole).first(whole.size() - 1));
  EXPECT_TRUE(reader_->check_idle(std::chrono::steady_clock::now() - milliseconds{1}));
  // First with its buffer, then with the bytes parked.
  EXPECT_TRUE(reader_->check_idle(in(kFrameStall - milliseconds{10'000})));
  EXPECT_FALSE(reader_->check_idle(in(kFrameStall + milliseconds{1})));
  send(Bytes(whole).last(1));
  EXPECT_TRUE(reader_->check_idle(in(kFrameStall + milliseconds{1})));
  EXPECT_EQ(sink_->batches.size(), 1u);
  sink_->wants = false;
  send(Bytes(whole).first(30));
  EXPECT_TRUE(reader_->held());
  EXPECT_TRUE(reader_->check_idle(in(2 * kFrameStall))) << "it is we who do not read";
}

// An encoded page may be a megabyte of records in a few bytes.
TEST_F(PageReaderTest, TheSinkIsAskedBehindFourMegabytesOfRecords) {
  static_assert(kBytesBetweenAsking == 4u << 20);
  for (const uint32_t raw_bytes : {wire::kMaxPageBytes, wire::kMaxPageBytes - 32}) {
    begin(8, {});
    std::vector<uint8_t> bytes;
    for (uint32_t at = 0; at < 6; ++at) {
      add(bytes,
          fakes::encoded_page_frame_bytes(index_page_header(1, at * raw_bytes / 32, raw_bytes / 32),
                                          Bytes(kClose), raw_bytes));
    }
    reader_->start();
    ASSERT_TRUE(other_.send_bytes(bytes));
    loop_.run();
    const bool is_full = raw_bytes == wire::kMaxPageBytes;
    EXPECT_THAT(sink_->order,
                is_full ? ElementsAre("4 pages", "2 pages") : ElementsAre("5 pages", "1 pages"));
  }
}

// Before every read, and behind so many frames of one read.
TEST_F(PageReaderTest, TheSinkIsAskedBehindSoManyFrames) {
  static_assert(kFramesBetweenAsking == 256);
  const auto asked = [this](uint32_t frames) {
    begin(8, {});
    std::vector<uint8_t> bytes;
    for (uint32_t at = 0; at < frames; ++at) add(bytes, kClose);
    EXPECT_TRUE(other_.send_bytes(bytes));
    reader_->start();
    loop_.run();
    EXPECT_EQ(sink_->frames.size(), frames);
    return sink_->asked;
  };
  const int reads = asked(255);
  EXPECT_LE(reads, 3);
  EXPECT_EQ(asked(256), reads + 1);
  EXPECT_EQ(asked(511), reads + 1);
  EXPECT_EQ(asked(512), reads + 2);
}

TEST_F(PageReaderTest, WhatIsEnoughForTheSinkIsLeftInTheBuffer) {
  class FullSink final : public PageSink {
   public:
    size_t pages = 0;
    size_t frames = 0;
    bool on_pages(PageBatch batch) override {
      pages += batch.pages.size();
      return true;
    }
    bool on_data_frame(const wire::Frame&) override {
      ++frames;
      return true;
    }
    void on_bad_data(wire::FrameError) override {}
    bool wants_more() override { return frames < 256 && pages < 4; }
  };
  const auto sink = std::make_shared<FullSink>();
  const auto reader = std::make_shared<PageReader>(link_, sink, pool_);
  std::vector<uint8_t> bytes;
  for (int at = 0; at < 400; ++at) add(bytes, kClose);
  reader->start();
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  EXPECT_EQ(sink->frames, 256u);
  EXPECT_TRUE(reader->held());
  sink->frames = 0;
  reader->resume();
  loop_.run();
  EXPECT_EQ(sink->frames, 144u);
  bytes.clear();
  constexpr uint32_t kRaw = wire::kMaxPageBytes;
  for (uint32_t at = 0; at < 6; ++at) {
    add(bytes, fakes::encoded_page_frame_bytes(index_page_header(1, at * kRaw / 32, kRaw / 32),
                                               Bytes(kClose), kRaw));
  }
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  EXPECT_EQ(sink->pages, 4u);
  EXPECT_TRUE(reader->held());
  sink->pages = 0;
  reader->resume();
  loop_.run();
  EXPECT_EQ(sink->pages, 2u);
  reader->stop();
}

TEST_F(PageReaderTest, TheSinkEndsTheReading) {
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, kClose);
  add(bytes, page(10, 10));
  add(bytes, kClose);
  reader_->start();
  sink_->goes_on = false;
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  EXPECT_THAT(sink_->order, ElementsAre("1 pages"));
  EXPECT_EQ(pool_->in_use(), 1u) << "the batch holds it";
  sink_->batches.clear();
  EXPECT_EQ(pool_->in_use(), 0u);
  EXPECT_TRUE(link_->open()) << "that is for the sink to decide";

  std::vector<uint8_t> two = kClose;
  add(two, kClose);
  begin(8, two);
  sink_->goes_on = false;
  reader_->start();
  loop_.run();
  EXPECT_THAT(sink_->order, ElementsAre("frame"));
  EXPECT_EQ(pool_->in_use(), 0u);
}

TEST_F(PageReaderTest, BadBytesAreToldBehindTheGoodOnes) {
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, {'j', 'u', 'n', 'k'});
  reader_->start();
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  EXPECT_EQ(sink_->records(), index_events(0, 10));
  EXPECT_THAT(sink_->bad, ElementsAre(wire::FrameError::kMagic));
  ASSERT_TRUE(other_.send_bytes(page(10, 10)));
  loop_.run();
  EXPECT_EQ(sink_->batches.size(), 1u);
  EXPECT_EQ(sink_->bad.size(), 1u);
}

TEST_F(PageReaderTest, TheEndIsToldBehindTheLastPage) {
  reader_->start();
  const auto whole = page(0, 10);
  ASSERT_TRUE(other_.send_bytes(whole));
  other_.end_sending();
  loop_.run();
  EXPECT_EQ(sink_->records(), index_events(0, 10));
  EXPECT_THAT(owner_->ends, ElementsAre("closed by the peer"));

  begin(8, {});
  reader_->start();
  link_->send(FrameType::kHeartbeat, wire::Heartbeat());
  loop_.run();
  other_.close();  // over bytes that it has not read
  loop_.run();
  EXPECT_THAT(owner_->ends, ElementsAre("Connection reset by peer"));
}

// ---- encoded pages become records

Page sent_page(const std::vector<uint8_t>& frame, uint64_t first, uint32_t count) {
  Page page{index_page_header(1, first, count), Bytes(frame).subspan(wire::kPagePrefixBytes), {}};
  page.codec = Codec::kColumns;
  page.raw_bytes = count * 32;
  return page;
}

TEST(PageUnpackerTest, PagesLieSideBySideAsTheyAreStored) {
  PageUnpacker unpacker;
  std::vector<std::vector<uint8_t>> frames;
  std::vector<Page> unpacked;
  for (uint64_t first : {0, 100, 200}) {
    frames.push_back(fakes::encoded_page_frame_bytes(index_page_header(1, first, 100),
                                                     index_events(first, 100)));
    const Page sent = sent_page(frames.back(), first, 100);
    const auto page = unpacker.unpack(sent);
    ASSERT_TRUE(page.ok()) << to_string(page.error());
    EXPECT_EQ(page->codec, Codec::kRaw);
    EXPECT_EQ(page->first_seq, first);
    EXPECT_EQ(page->encoded.data(), sent.bytes.data()) << "containers keep it as it came";
    EXPECT_EQ(page->encoded.size(), sent.bytes.size());
    EXPECT_EQ(page->bytes_crc32c, crc32c(index_events(first, 100)));
    unpacked.push_back(*page);
  }
  for (const Page& page : unpacked) {
    EXPECT_EQ(std::vector<uint8_t>(page.bytes.begin(), page.bytes.end()),
              index_events(page.first_seq, 100));
  }
  EXPECT_EQ(unpacked[1].bytes.data(), unpacked[0].bytes.data() + 3200);
  unpacker.clear();
  EXPECT_EQ(unpacker.unpack(sent_page(frames[0], 0, 100))->bytes.data(), unpacked[0].bytes.data());
}

TEST(PageUnpackerTest, HasRoomForSoMuch) {
  PageUnpacker unpacker;
  Page large;
  large.codec = Codec::kColumns;
  large.raw_bytes = static_cast<uint32_t>(kUnpackBytes);
  EXPECT_TRUE(unpacker.has_room(large));
  large.raw_bytes += 1;
  EXPECT_FALSE(unpacker.has_room(large));
  large.codec = Codec::kRaw;
  EXPECT_TRUE(unpacker.has_room(large)) << "what came raw stays where it is";
  const auto frame =
      fakes::encoded_page_frame_bytes(index_page_header(1, 0, 100), index_events(0, 100));
  ASSERT_TRUE(unpacker.unpack(sent_page(frame, 0, 100)).ok());
  large.codec = Codec::kColumns;
  large.raw_bytes = static_cast<uint32_t>(kDecodedRunBytes - 3200);
  EXPECT_TRUE(unpacker.has_room(large));
  large.raw_bytes += 1;
  EXPECT_FALSE(unpacker.has_room(large));
  unpacker.clear();
  EXPECT_TRUE(unpacker.has_room(large));
}

TEST(PageUnpackerTest, RawPagesAreLeftAndDamagedOnesNamed) {
  PageUnpacker unpacker;
  const auto events = index_events(0, 3);
  const Page raw{index_page_header(1, 0, 3), events, {}};
  const auto same = unpacker.unpack(raw);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->bytes.data(), events.data());
  EXPECT_THAT(same->encoded, IsEmpty());
  Page damaged{index_page_header(7, 40, 100), events, {}};
  damaged.codec = Codec::kColumns;
  damaged.raw_bytes = 3200;
  const auto refused = unpacker.unpack(damaged);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kDamaged);
  EXPECT_THAT(refused.error().message, testing::StartsWith("page of stream 7 from record 40: "));
}

}  // namespace
}  // namespace collect::ingest
