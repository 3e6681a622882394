#include "daemon/ingest/peer/agent_profile.h"

#include <gmock/gmock.h>

#include "daemon/ingest/clock/clock_fit.h"
#include "proto/wire/codec_rules.h"
#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::Pair;

class AgentProfileTest : public PeerPartsTest {
 protected:
  void begin_profile() {
    begin();
    profile().set_state(AgentState::kConnected, "");
  }
  AgentProfile& profile() { return parts_->profile; }
  AgentSnapshot shown() {
    return *reported_.agent([](const AgentSnapshot&) { return true; });
  }
  static wire::Heartbeat beat_of(uint64_t raw, uint64_t sent, uint64_t spooled = 0) {
    wire::Heartbeat beat;
    beat.set_link_raw_bytes(raw);
    beat.set_link_sent_bytes(sent);
    beat.set_spooled_bytes(spooled);
    return beat;
  }
};

TEST_F(AgentProfileTest, AnotherHelloKeepsWhatIsNotInIt) {
  begin_profile();
  const AgentId id = profile().shown().id;
  profile().count_connection();
  profile().set_session("session_1/pid_1");
  profile().set_start_filter({3, {}, ""});
  profile().set_state(AgentState::kDisconnected, "the cable");
  wire::Hello again = hello();
  again.set_process_name("renamed");
  profile().greet(again, principal::Principal::of_uid(77), "10.0.0.1:5", "");
  const AgentSnapshot& now = profile().shown();
  EXPECT_EQ(now.id, id);
  EXPECT_EQ(profile().name(), "agents/" + std::to_string(id));
  EXPECT_EQ(profile().name_for_log(), profile().name() + " \"renamed\"");
  EXPECT_EQ(now.session, "session_1/pid_1");
  EXPECT_EQ(now.state, AgentState::kDisconnected);
  EXPECT_EQ(now.status, "the cable");
  EXPECT_EQ(now.start_filter->functions, 3u);
  EXPECT_EQ(now.address, "10.0.0.1:5");
  EXPECT_FALSE(now.dialled);
  EXPECT_EQ(profile().account()->principal(), principal::Principal::of_uid(77));
  profile().greet(again, principal::Principal::of_uid(77), "10.0.0.1:5", "usb:1");
  EXPECT_EQ(profile().shown().address, "usb:1");
  EXPECT_TRUE(profile().shown().dialled);
}

TEST_F(AgentProfileTest, ConnectionsBehindTheFirstAreReconnects) {
  begin_profile();
  EXPECT_FALSE(profile().was_connected());
  profile().count_connection();
  EXPECT_TRUE(profile().was_connected());
  EXPECT_EQ(profile().shown().reconnects, 0u);
  profile().count_connection();
  EXPECT_EQ(profile().shown().reconnects, 1u);
}

TEST_F(AgentProfileTest, FeaturesAreThoseThatBothHave) {
  process_.features = wire::kFeatureStartFilter | wire::codec_features(false);
  begin_profile();
  EXPECT_EQ(profile().agreed_features(), process_.features);
  process_.features = wire::codec_features(false);
  begin_profile();
  EXPECT_EQ(profile().agreed_features(), process_.features) << "it offered no filter";
  process_.features = ~uint64_t{0};
  process_.boot_id = boot_id();
  begin_profile();
  EXPECT_EQ(profile().agreed_features(), wire::kFeatureStartFilter | wire::codec_features(true))
      << "on one machine";
  options_.page_codecs = false;
  begin_profile();
  EXPECT_EQ(profile().agreed_features(), wire::kFeatureStartFilter);
}

TEST_F(AgentProfileTest, StatusOfTheAgentIsBounded) {
  begin_profile();
  profile().set_state(AgentState::kGone, std::string(1'000'000, 'x'));
  EXPECT_LT(shown().status.size(), 10'000u);
  EXPECT_EQ(shown().state, AgentState::kGone);
}

TEST_F(AgentProfileTest, HeartbeatIsNewsWhereSomethingMoved) {
  begin_profile();
  EXPECT_FALSE(profile().take(beat_of(100, 100))) << "pages go as they are";
  EXPECT_EQ(profile().shown().link_raw_bytes, 100u);
  EXPECT_TRUE(profile().take(beat_of(200, 150))) << "pages are encoded";
  EXPECT_FALSE(profile().take(beat_of(210, 150)));
  EXPECT_EQ(profile().shown().link_raw_bytes, 210u);
  EXPECT_TRUE(profile().take(beat_of(210, 150, 9)));
  EXPECT_EQ(profile().shown().spooled_bytes, 9u);
  wire::Heartbeat armed = beat_of(210, 150, 9);
  armed.set_detail(wire::DETAIL_ARMED);
  EXPECT_TRUE(profile().take(armed));
  EXPECT_EQ(profile().shown().detail, DetailMode::kArmed);
  EXPECT_FALSE(profile().take(armed));
}

TEST_F(AgentProfileTest, CountersAreShownAtTheNextHeartbeat) {
  begin_profile();
  wire::Counters counters;
  wire::Counter& counter = *counters.add_counters();
  counter.set_name("frames");
  counter.set_value(7);
  EXPECT_TRUE(profile().take(counters).ok());
  EXPECT_TRUE(profile().shown().counters.empty());
  EXPECT_TRUE(profile().take(beat_of(0, 0)));
  EXPECT_THAT(profile().shown().counters, ElementsAre(Pair("frames", 7)));
  EXPECT_FALSE(profile().take(beat_of(0, 0)));
  counter.set_name("");
  EXPECT_EQ(profile().take(counters).code(), Code::kDamaged);
  EXPECT_FALSE(profile().take(beat_of(0, 0))) << "nothing of them was taken";
}

}  // namespace
}  // namespace collect::ingest
