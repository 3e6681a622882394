// One data channel driven by hand: what is stored of it, what reaches its owner, and when it is
// still.
#include "daemon/ingest/lane/data_lane.h"

#include <gmock/gmock.h>

#include "daemon/ingest/lane/agent_decoder.h"
#include "daemon/ingest/link/limits.h"
#include "tests/daemon/ingest/session/session_queue_fixture.h"
#include "tests/fakes/fake_agent.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using fakes::index_events;
using fakes::index_page_header;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class HeardLane final : public LaneOwner {
 public:
  bool lets_read = true;
  bool goes_on = true;
  int asked = 0;
  std::vector<FrameType> frames;
  std::vector<std::string> faults;  // reasons
  std::vector<std::error_code> ends;
  std::function<void()> on_frame;

  bool on_data_frame(const wire::Frame& frame) override {
    frames.push_back(frame.type);
    if (on_frame) on_frame();
    return goes_on;
  }
  void on_data_fault(const Refusal& fault) override { faults.push_back(fault.reason); }
  void on_data_end(const std::error_code& error) override { ends.push_back(error); }
  std::chrono::nanoseconds read_wait() override {
    ++asked;
    return lets_read ? milliseconds{0} : milliseconds{1};
  }
};

class DataLaneTest : public SessionQueueTest {
 protected:
  ~DataLaneTest() override {
    let_go();
    if (lane_) lane_->end(&Link::close);
    if (core_) core_->stop_threads();
    loop_.run();
  }
  // With a session that has stream 1.
  void begin_lane(std::vector<uint8_t> early = {}) {
    begin();
    open();
    make_lane(std::move(early));
    lane_->store_into(queue_);
    const auto opened = open_stream(1);
    queue_->push([&](StoredSession& session) { return take(opened, &session); });
    settle();
  }
  void make_lane(std::vector<uint8_t> early) {
    std::tie(link_, other_) = loop_.link(std::move(early));
    decoder_ = std::make_shared<AgentDecoder>(wire::kFeatureColumns, core_->counters,
                                              core_->options.threads_per_agent, account_, modules_);
    decoder_->begin_recording(1);
    owner_ = std::make_shared<HeardLane>();
    lane_ = std::make_shared<DataLane>(loop_.io(), link_, owner_, decoder_, core_->lane_buffers,
                                       core_->counters);
  }
  // As a turn does.
  Status take(const std::vector<uint8_t>& bytes, StoredSession* session) {
    LaneTurn turn;
    size_t taken = 0;
    return decoder_->take(bytes, session, unpacker_, turn, taken);
  }
  static std::vector<uint8_t> open_stream(uint32_t id) {
    wire::StreamOpen stream;
    stream.set_recording(1);
    stream.set_stream_id(id);
    stream.set_thread_id(10 + id);
    return fakes::frame_bytes(FrameType::kStreamOpen, stream);
  }
  static std::vector<uint8_t> close_stream(uint32_t id, uint64_t index_count) {
    wire::StreamClose close;
    close.set_stream_id(id);
    close.set_index_count(index_count);
    return fakes::frame_bytes(FrameType::kStreamClose, close);
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
  bool stored(uint64_t events) {
    return loop_.run_until([&] { return stored_[1].index_next == events; });
  }
  // The records in the file, which is not sealed.
  std::vector<uint8_t> records(uint64_t count) {
    const auto file =
        posix_.open(opened_->directory + "/thread_0/index.atf", storage::OpenMode::kRead);
    std::vector<uint8_t> bytes(count * 32 + 1);
    const auto read = file.ok() ? (*file)->read_at(64, bytes) : Result<size_t>(size_t{0});
    bytes.resize(read.ok() ? *read : 0);
    return bytes;
  }
  static SteadyTime in(milliseconds later) { return std::chrono::steady_clock::now() + later; }

  std::shared_ptr<Link> link_;
  FrameSocket other_;
  const std::shared_ptr<LoadedModules> modules_ = std::make_shared<LoadedModules>();
  std::shared_ptr<AgentDecoder> decoder_;
  std::shared_ptr<HeardLane> owner_;
  std::shared_ptr<DataLane> lane_;
};

const auto kEnd = fakes::frame_bytes(FrameType::kRecordingEnd, wire::RecordingEnd());

TEST_F(DataLaneTest, StoresPagesAndDeliversRecordingFramesInOrder) {
  begin_lane();
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, page(10, 10));
  add(bytes, kEnd);
  add(bytes, kEnd);
  add(bytes, page(20, 5));
  std::vector<uint64_t> before_frame;
  owner_->on_frame = [&] { before_frame.push_back(core_->counters.pages_stored); };
  lane_->start();
  send(bytes);
  ASSERT_TRUE(stored(25));
  EXPECT_THAT(owner_->frames, ElementsAre(FrameType::kRecordingEnd, FrameType::kRecordingEnd));
  EXPECT_THAT(before_frame, ElementsAre(2, 2));
  EXPECT_EQ(records(25), index_events(0, 25));
  EXPECT_EQ(core_->counters.bytes_received, bytes.size());
  EXPECT_EQ(core_->counters.pages_stored, 3u);
}

// The owner hears nothing of them: they are stored between the pages that they explain.
TEST_F(DataLaneTest, FramesBetweenPagesAreStoredWithinTheTurn) {
  begin_lane();
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, close_stream(1, 12));
  add(bytes, open_stream(2));
  add(bytes, fakes::page_frame_bytes(index_page_header(2, 0, 5), index_events(0, 5)));
  lane_->start();
  send(bytes);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[2].index_next == 5 && stored_[1].closed; }));
  EXPECT_EQ(stored_[1].index_next, 12u) << "two are lost";
  EXPECT_THAT(owner_->frames, IsEmpty());
  ASSERT_EQ(decoder_->threads().size(), 1u);
  EXPECT_EQ(*decoder_->threads()[0].thread_id, 12u);
}

TEST_F(DataLaneTest, BytesReadBeforeAreDecodedWithoutTheSocket) {
  begin_lane(page(0, 10));
  lane_->start();
  EXPECT_EQ(owner_->asked, 0) << "not from within";
  ASSERT_TRUE(stored(10));
  EXPECT_THAT(owner_->frames, IsEmpty());
}

// Some frames stand across the ends of reads and turns.
TEST_F(DataLaneTest, AllOfALongStreamIsThere) {
  begin_lane();
  std::vector<uint8_t> bytes;
  constexpr uint32_t kPage = 3001;
  uint64_t next = 0;
  while (bytes.size() < 5 * kReadTurnBytes) {
    add(bytes, page(next, kPage));
    next += kPage;
  }
  lane_->start();
  send(bytes);
  ASSERT_TRUE(stored(next));
  EXPECT_TRUE(records(next) == index_events(0, static_cast<uint32_t>(next)));
  EXPECT_EQ(core_->counters.bytes_received, bytes.size());
}

TEST_F(DataLaneTest, FrameAsLongAsTheyMayBeFits) {
  begin_lane();
  std::vector<uint8_t> bytes = page(0, 100);
  add(bytes, page(100, wire::kMaxPageBytes / 32));
  lane_->start();
  send(bytes);
  constexpr uint32_t kAll = 100 + wire::kMaxPageBytes / 32;
  ASSERT_TRUE(stored(kAll));
  EXPECT_TRUE(records(kAll) == index_events(0, kAll));
}

TEST_F(DataLaneTest, WaitsUntilItsOwnerLetsItRead) {
  begin_lane();
  owner_->lets_read = false;
  lane_->start();
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  ASSERT_TRUE(loop_.run_until([&] { return owner_->asked >= 3; }));
  EXPECT_TRUE(lane_->held());
  EXPECT_EQ(core_->counters.bytes_received, 0u);
  owner_->lets_read = true;
  ASSERT_TRUE(stored(10));
  EXPECT_FALSE(lane_->held());
}

TEST_F(DataLaneTest, GivesUpOnAnUnfinishedFrame) {
  begin_lane();
  lane_->start();
  EXPECT_TRUE(lane_->check_idle(in(2 * kFrameStall))) << "nothing has begun";
  const auto whole = page(0, 10);
  send(Bytes(whole).first(whole.size() - 1));
  ASSERT_TRUE(
      loop_.run_until([&] { return !lane_->check_idle(in(kFrameStall + kExhaustedPause)); }));
  EXPECT_TRUE(lane_->check_idle(in(kFrameStall - milliseconds{10'000})));
  send(Bytes(whole).last(1));
  ASSERT_TRUE(stored(10));
  EXPECT_TRUE(loop_.run_until([&] { return lane_->check_idle(in(2 * kFrameStall)); }));
}

// Encoded pages become a hundred times their bytes.
TEST_F(DataLaneTest, TurnEndsBehindSoManyBytesOfRecords) {
  begin_lane();
  constexpr uint32_t kPages = 300;
  const uint32_t events = 2'000;
  ASSERT_GT(kPages * events * 32, kStoreTurnBytes);
  std::vector<uint8_t> bytes;
  for (uint32_t at = 0; at < kPages; ++at) {
    add(bytes, fakes::encoded_page_frame_bytes(index_page_header(1, at * events, events),
                                               index_events(at * events, events)));
  }
  ASSERT_LT(bytes.size(), kReadTurnBytes);
  lane_->start();
  send(bytes);
  ASSERT_TRUE(stored(kPages * events));
  EXPECT_GE(owner_->asked, 2);
  EXPECT_EQ(core_->counters.pages_decoded, kPages);
  EXPECT_TRUE(records(kPages * events) == index_events(0, kPages * events));
}

TEST_F(DataLaneTest, OwnerEndsTheReading) {
  begin_lane();
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, kEnd);
  add(bytes, kEnd);
  add(bytes, page(10, 10));
  lane_->start();
  owner_->goes_on = false;
  ASSERT_TRUE(other_.send_bytes(bytes));
  ASSERT_TRUE(loop_.run_until([&] { return !owner_->frames.empty(); }));
  settle();
  loop_.run();
  EXPECT_EQ(owner_->frames.size(), 1u);
  EXPECT_EQ(stored_[1].index_next, 10u);
  EXPECT_TRUE(link_->open()) << "that is for the owner to decide";
}

TEST_F(DataLaneTest, ReportsBadBytesAfterTheGoodOnes) {
  begin_lane();
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, {'j', 'u', 'n', 'k'});
  lane_->start();
  ASSERT_TRUE(other_.send_bytes(bytes));
  ASSERT_TRUE(loop_.run_until([&] { return !owner_->faults.empty(); }));
  EXPECT_THAT(owner_->faults, ElementsAre(wire::frame_error_text(wire::FrameError::kMagic)));
  ASSERT_TRUE(stored(10));
  EXPECT_EQ(core_->counters.pages_bad_checksum, 0u);
}

TEST_F(DataLaneTest, ReportsInvalidFrames) {
  const auto fault_of = [this](std::vector<uint8_t> bytes) {
    begin_lane();
    lane_->start();
    EXPECT_TRUE(other_.send_bytes(bytes));
    EXPECT_TRUE(loop_.run_until([&] { return !owner_->faults.empty(); }));
    EXPECT_EQ(owner_->faults.size(), 1u);
    lane_->end(&Link::close);
    core_->stop_threads();
    loop_.run();
    opened_.reset();
    return owner_->faults.empty() ? "" : owner_->faults.front();
  };
  EXPECT_EQ(fault_of(fakes::page_frame_bytes(index_page_header(2, 0, 1), index_events(0, 1))),
            "page of stream 2, which is not open");
  std::vector<uint8_t> back = page(10, 10);
  add(back, page(19, 10));
  EXPECT_EQ(fault_of(back), "page of stream 1 jumps back from record 20 to 19");
  EXPECT_EQ(
      fault_of(fakes::tuple_page_frame_bytes(index_page_header(1, 0, 100), index_events(0, 100))),
      "page of codec 2, which was not agreed on");
  std::vector<uint8_t> damaged = page(0, 10);
  damaged.back() ^= 1;
  EXPECT_EQ(fault_of(damaged), wire::frame_error_text(wire::FrameError::kPageChecksum));
  EXPECT_EQ(core_->counters.pages_bad_checksum, 1u);
}

TEST_F(DataLaneTest, ReportsTheEndAfterTheLastPage) {
  begin_lane();
  lane_->start();
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  other_.end_sending();
  ASSERT_TRUE(loop_.run_until([&] { return !owner_->ends.empty(); }));
  EXPECT_THAT(owner_->ends, ElementsAre(std::error_code(asio::error::eof)));
  ASSERT_TRUE(stored(10));
}

TEST_F(DataLaneTest, WithoutASessionNothingIsStored) {
  begin_lane();
  lane_->store_into(nullptr);
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, kEnd);
  owner_->on_frame = [this] { lane_->store_into(queue_); };
  add(bytes, page(10, 10));
  lane_->start();
  send(bytes);
  ASSERT_TRUE(stored(20));
  EXPECT_EQ(core_->counters.pages_stored, 1u);
}

// What has come is read at once, before anything else happens on the io thread.
TEST_F(DataLaneTest, ReadsFramesAtOnceWithoutASession) {
  begin_lane();
  lane_->store_into(nullptr);
  lane_->start();
  loop_.run();
  ASSERT_TRUE(other_.send_bytes(kEnd));
  lane_->read_now();
  EXPECT_THAT(owner_->frames, ElementsAre(FrameType::kRecordingEnd));
}

// The link is the turn's until that is over.
TEST_F(DataLaneTest, EndingWaitsForTheTurn) {
  begin_lane();
  hold();
  lane_->start();
  loop_.run();  // the turn waits behind what holds the session
  int ended = 0;
  lane_->end([&](Link& link) {
    ++ended;
    link.close();
  });
  loop_.run();
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(link_->open());
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return ended == 1; }));
  EXPECT_FALSE(link_->open());
  EXPECT_THAT(owner_->ends, IsEmpty());
}

TEST_F(DataLaneTest, ReadsOnAfterTheSessionFailed) {
  begin_lane();
  lane_->start();
  push(storage::StreamEnd{.stream_id = 99, .thread_name = {}});  // of no stream
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value(); }));
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, kEnd);
  send(bytes);
  ASSERT_TRUE(loop_.run_until([&] { return !owner_->frames.empty(); }));
  EXPECT_EQ(core_->counters.events_stored, 0u);
}

// Of descriptors there are soon more: the same pages are stored then, and once.
TEST_F(DataLaneTest, RetriesPagesAfterTransientStorageErrors) {
  fs_ = &faulty_;
  begin_lane();
  lane_->start();
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  ASSERT_TRUE(stored(10));
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .code = Code::kExhausted});
  std::vector<uint8_t> bytes = page(10, 10);
  add(bytes, page(20, 10));
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  let_go();
  ASSERT_TRUE(stored(30));
  EXPECT_GE(core_->counters.reads_held, 1u);
  EXPECT_FALSE(failed_.has_value());
  EXPECT_THAT(owner_->faults, IsEmpty());
  EXPECT_EQ(records(30), index_events(0, 30));
}

TEST_F(DataLaneTest, RetriesFramesAfterTransientStorageErrors) {
  fs_ = &faulty_;
  begin_lane();
  lane_->start();
  ASSERT_TRUE(other_.send_bytes(page(0, 10)));
  ASSERT_TRUE(stored(10));
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .code = Code::kExhausted});
  std::vector<uint8_t> bytes = open_stream(2);
  add(bytes, fakes::page_frame_bytes(index_page_header(2, 0, 5), index_events(0, 5)));
  ASSERT_TRUE(other_.send_bytes(bytes));
  loop_.run();
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return stored_[2].index_next == 5; }));
  EXPECT_GE(core_->counters.reads_held, 1u);
  EXPECT_FALSE(failed_.has_value());
  EXPECT_THAT(owner_->faults, IsEmpty());
  EXPECT_EQ(account_->used(principal::Resource::kMemory), 2 * kStreamMemory) << "charged once";
}

TEST(LaneBuffersTest, ReusesTheLastBufferAndFreesIdleOnes) {
  LaneBuffers buffers;
  auto one = buffers.take();
  auto two = buffers.take();
  const LaneBuffer* const last = two.get();
  buffers.give_back(std::move(one));
  buffers.give_back(std::move(two));
  EXPECT_EQ(buffers.free_buffers(), 2u);
  buffers.trim();  // both were in use since
  EXPECT_EQ(buffers.free_buffers(), 2u);
  auto again = buffers.take();
  EXPECT_EQ(again.get(), last);
  buffers.give_back(std::move(again));
  buffers.trim();
  EXPECT_EQ(buffers.free_buffers(), 1u);
  buffers.trim();
  EXPECT_EQ(buffers.free_buffers(), 0u);
}

}  // namespace
}  // namespace collect::ingest
