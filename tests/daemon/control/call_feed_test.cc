// Frames between collectord and collect-calls, and what waits for a slow client.
#include "daemon/control/call_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "daemon/control/service/calls_backlog.h"

namespace collect::control {
namespace {

using Frames = std::vector<std::pair<FeedKind, std::string>>;
using testing::ElementsAre;
using testing::Pair;

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class Feed {
 public:
  Status take(std::string_view bytes) {
    return reader.take(bytes_of(bytes), [this](FeedKind kind, std::string_view body) {
      frames.emplace_back(kind, body);
      return Status();
    });
  }
  FeedReader reader;
  Frames frames;
};

TEST(CallFeed, FramesComeInAnyPieces) {
  const std::string bytes = feed_frame(FeedKind::kBatch, "abc") + feed_frame(FeedKind::kError, "") +
                            feed_frame(FeedKind::kRequest, std::string(1, '\0'));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x03\0\0\0\x02"
                                            "abc",
                                            8));
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    Feed feed;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(feed.take(std::string_view(bytes).substr(at, piece)).ok());
    }
    EXPECT_THAT(feed.frames, ElementsAre(Pair(FeedKind::kBatch, "abc"), Pair(FeedKind::kError, ""),
                                         Pair(FeedKind::kRequest, std::string(1, '\0'))));
    EXPECT_TRUE(feed.reader.is_between_frames());
  }
}

TEST(CallFeed, PrefixIsNoFrameYet) {
  const std::string bytes = feed_frame(FeedKind::kBatch, "abc");
  for (size_t size = 1; size < bytes.size(); ++size) {
    Feed feed;
    EXPECT_TRUE(feed.take(bytes.substr(0, size)).ok());
    EXPECT_TRUE(feed.frames.empty());
    EXPECT_FALSE(feed.reader.is_between_frames());
  }
}

TEST(CallFeed, LimitAndOneMore) {
  const auto head = [](uint32_t size, char kind) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(size >> shift & 0xff);
    return bytes + kind;
  };
  Feed feed;
  EXPECT_TRUE(feed.take(head(kMaxFeedBodyBytes, 2)).ok());
  EXPECT_TRUE(feed.take(std::string(kMaxFeedBodyBytes, 'x')).ok());
  EXPECT_EQ(feed.frames.size(), 1u);
  EXPECT_EQ(Feed().take(head(kMaxFeedBodyBytes + 1, 2)).code(), Code::kDamaged);
  EXPECT_EQ(Feed().take(head(0, 0)).code(), Code::kDamaged);
  EXPECT_EQ(Feed().take(head(0, 4)).code(), Code::kDamaged);
}

TEST(CallFeed, RequestComesBackAndADamagedOneIsNone) {
  FeedRequest request;
  request.directory = std::string("/a\xff\n\0b", 6);
  request.finds_names = false;
  request.symbol_directories = {"", "/s"};
  request.symbol_roots = {"/"};
  request.wanted.add_functions("parse_*");
  request.wanted.mutable_least_duration()->set_nanos(5'000'000);
  const std::string body = request.body();
  const auto read = FeedRequest::parse(body);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->directory, request.directory);
  EXPECT_FALSE(read->finds_names);
  EXPECT_EQ(read->symbol_directories, request.symbol_directories);
  EXPECT_EQ(read->symbol_roots, request.symbol_roots);
  EXPECT_EQ(read->wanted.SerializeAsString(), request.wanted.SerializeAsString());
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(FeedRequest::parse(body.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(FeedRequest::parse(body + "x").ok());
  for (size_t at = 0; at < body.size(); ++at) {  // it says so, or is another request
    std::string changed = body;
    changed[at] = static_cast<char>(changed[at] ^ 0x80);
    (void)FeedRequest::parse(changed);
  }
}

v1::CallBatch batch_of(uint64_t number, int calls) {
  v1::CallBatch batch;
  batch.set_time_ns(number);
  batch.set_events(10);
  batch.set_skipped_calls(1);
  batch.set_skipped_events(2);
  batch.set_lost_events(3);
  batch.mutable_interval()->set_nanos(600'000'000);
  for (int i = 0; i < calls; ++i) batch.add_calls();
  return batch;
}

TEST(CallsBacklog, SlowClientGetsTheNewestAndCounts) {
  CallsBacklog backlog;
  for (uint64_t i = 0; i < kMaxWaitingBatches + 2; ++i) backlog.put(batch_of(i, 5));
  const v1::CallBatch first = backlog.take();
  EXPECT_EQ(first.time_ns(), 2u);
  EXPECT_EQ(first.calls_size(), 5);
  EXPECT_EQ(first.events(), 30u);
  EXPECT_EQ(first.skipped_calls(), 3u + 10);
  EXPECT_EQ(first.skipped_events(), 6u);
  EXPECT_EQ(first.lost_events(), 9u);
  EXPECT_EQ(first.interval().seconds(), 1);
  EXPECT_EQ(first.interval().nanos(), 800'000'000);
  for (size_t i = 1; i < kMaxWaitingBatches; ++i) {
    EXPECT_EQ(backlog.take().skipped_calls(), 1u);
  }
  EXPECT_TRUE(backlog.empty());
}

}  // namespace
}  // namespace collect::control
