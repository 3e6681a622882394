#include "agent/drain/link/collector_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace collect::agent {
namespace {

class CollectorListTest : public testing::Test {
 protected:
  std::string fault(const std::string& text) {
    const char* const error = list_->prepare(text.c_str());
    return error == nullptr ? "" : error;
  }
  uint16_t port() const { return port_of(list_->address()); }
  // The ports that are tried up to the pause, with that after which it comes.
  std::string round() {
    std::string ports;
    for (int i = 0; i < 100; ++i) {
      ports += std::to_string(port()) + " ";
      if (list_->try_next_address()) return ports;
    }
    return ports + "…";
  }

  std::unique_ptr<CollectorList> list_ = std::make_unique<CollectorList>();
};

TEST_F(CollectorListTest, OneAddressIsTriedAgainAndAgain) {
  ASSERT_EQ(fault("127.0.0.1:7"), "");
  EXPECT_EQ(list_->size(), 1u);
  EXPECT_STREQ(list_->text(), "127.0.0.1:7");
  EXPECT_EQ(round(), "7 ");
  EXPECT_EQ(round(), "7 ");
  EXPECT_TRUE(list_->try_next_collector()) << "there is no other";
  EXPECT_EQ(port(), 7);
}

TEST_F(CollectorListTest, AllAreTriedBeforeThePause) {
  ASSERT_EQ(fault("127.0.0.1:7,localhost:8,tcp:9"), "");
  EXPECT_EQ(list_->size(), 3u);
  EXPECT_EQ(round(), "7 8 8 9 ") << "localhost has two addresses";
  EXPECT_STREQ(list_->text(), "127.0.0.1:7");
  EXPECT_EQ(round(), "7 8 8 9 ");
  ASSERT_EQ(fault("tcp:7, tcp:8"), "");
  EXPECT_EQ(round(), "7 8 ");
}

TEST_F(CollectorListTest, CollectorIsLeftWithAllItsAddresses) {
  ASSERT_EQ(fault("localhost:7,tcp:8"), "");
  EXPECT_FALSE(list_->try_next_collector());
  EXPECT_STREQ(list_->text(), "tcp:8");
  EXPECT_EQ(port(), 8);
  EXPECT_TRUE(list_->try_next_collector());
  EXPECT_STREQ(list_->text(), "localhost:7");
}

TEST_F(CollectorListTest, SkipsCollectorsThatRefusedForGood) {
  ASSERT_EQ(fault("tcp:7,tcp:8,tcp:9"), "");
  (void)list_->try_next_collector();
  list_->refused_for_good();  // 8
  EXPECT_FALSE(list_->try_next_address());
  EXPECT_EQ(round(), "9 ");
  EXPECT_EQ(round(), "7 9 ");
  list_->refused_for_good();
  EXPECT_FALSE(list_->is_hopeless());
  EXPECT_FALSE(list_->try_next_address());
  EXPECT_EQ(round(), "9 ");
  list_->refused_for_good();
  EXPECT_TRUE(list_->is_hopeless());
  EXPECT_TRUE(list_->try_next_collector());
}

TEST_F(CollectorListTest, StillTriesCollectorsThatLeftForGood) {
  ASSERT_EQ(fault("tcp:7,tcp:8"), "");
  list_->left_for_good();
  EXPECT_FALSE(list_->is_hopeless());
  EXPECT_FALSE(list_->try_next_collector());
  list_->left_for_good();
  EXPECT_TRUE(list_->is_hopeless());
  EXPECT_TRUE(list_->try_next_collector());
  EXPECT_EQ(round(), "7 8 ");
  list_->came_up();
  EXPECT_FALSE(list_->is_hopeless());
}

TEST_F(CollectorListTest, EachHasItsOwnTls) {
  ASSERT_EQ(fault("tls://127.0.0.1:7,127.0.0.1:8"), "");
  EXPECT_TRUE(list_->any_wants_tls());
  EXPECT_TRUE(list_->wants_tls());
  (void)list_->try_next_collector();
  EXPECT_FALSE(list_->wants_tls());
  ASSERT_EQ(fault("127.0.0.1:7,unix:/run/a"), "");
  EXPECT_FALSE(list_->any_wants_tls());
}

TEST_F(CollectorListTest, TextsThatAreNoList) {
  for (const char* text :
       {"", ",", "tcp:7,", ",tcp:7", "tcp:7,,tcp:8", "tcp:7,nonsense", "tls://unix:/a,tcp:7"}) {
    EXPECT_NE(fault(text), "") << text;
  }
  std::string nine = "tcp:1";
  for (int i = 2; i <= 8; ++i) nine += ",tcp:" + std::to_string(i);
  EXPECT_EQ(fault(nine), "");
  EXPECT_EQ(fault(nine + ",tcp:9"), "a list has at most 8 collectors");
  EXPECT_EQ(fault("tcp:7,unix:/" + std::string(kMaxAddress, 'a')),
            "an address of a collector is too long");
}

// Names below .invalid are never known.
TEST_F(CollectorListTest, SkipsAnUnknownHostWhenThereAreOthers) {
  EXPECT_NE(fault("unknown.invalid:7"), "");
  ASSERT_EQ(fault("unknown.invalid:7,tcp:8"), "");
  EXPECT_EQ(list_->size(), 1u);
  EXPECT_EQ(port(), 8);
}

TEST_F(CollectorListTest, ManyAddressesLeaveRoomForEachCollector) {
  ASSERT_EQ(fault("localhost:1,localhost:2,localhost:3,localhost:4,localhost:5,localhost:6,"
                  "localhost:7,localhost:8"),
            "");
  EXPECT_EQ(round(), "1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 ");
}

// What a forked child does: the list of its parent, as it was at the start.
TEST_F(CollectorListTest, SameTextIsResolvedOnce) {
  ASSERT_EQ(fault("tcp:7,tcp:8"), "");
  list_->refused_for_good();
  (void)list_->try_next_collector();
  CollectorList child;
  ASSERT_EQ(child.prepare("tcp:7,tcp:8"), nullptr);
  EXPECT_STREQ(child.text(), "tcp:7");
  EXPECT_FALSE(child.try_next_address());
  EXPECT_TRUE(child.try_next_address());
}

}  // namespace
}  // namespace collect::agent
