// A Link with a clock of the test's, and a collector that follows a script.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "agent/drain/link/link.h"
#include "proto/wire/frame_encoder.h"
#include "tests/agent/fake_recorder.h"
#include "tests/agent/scripted_collector.h"

namespace collect::agent {

using wire::FrameType;

class LinkTest : public testing::Test {
 protected:
  LinkTest() { fake::reset(); }
  ~LinkTest() override {
    link_->shut(true);
    streams_->spool().close();
  }

  void connect_to(const std::string& address) {
    settings_.role = Role::kConnect;
    std::memcpy(settings_.address, address.c_str(), address.size() + 1);
    ASSERT_EQ(link_->prepare(settings_, *streams_), nullptr);
  }
  void listen() {
    settings_.role = Role::kListen;
    std::memcpy(settings_.address, "tcp:0", 6);
    ASSERT_EQ(link_->prepare(settings_, *streams_), nullptr);
    step();
    ASSERT_NE(link_->listen_port(), 0);
  }
  // The kernel needs its moment to hand over what was sent: so many steps at one time of the clock.
  void step(uint64_t later_ms = 0) {
    now_ms_ += later_ms;
    for (int i = 0; i < 20; ++i) {
      link_->step(now_ms_);
      pollfd waiting[kMaxLinkPolls];
      const size_t count = link_->fill_poll(waiting, now_ms_, false);
      (void)poll(waiting, static_cast<nfds_t>(count), 1);
    }
  }
  // The agent's half of what `act` of the collector waits for.
  void step_until(ChannelStep wanted, const Channel& channel) {
    for (int i = 0; i < 5000 && channel.step != wanted; ++i) step();
    ASSERT_EQ(channel.step, wanted);
  }
  bool is_trying() const { return link_->control().step != ChannelStep::kClosed; }

  // One channel up to its Welcome, from the Hello on.
  void welcome(Peer& peer, Channel& channel, uint32_t heartbeat_ms, bool resumed = false) {
    const auto hello = peer.expect<wire::Hello>(FrameType::kHello);
    collector_.send_challenge(peer, hello, false);
    step_until(ChannelStep::kProving, channel);
    (void)collector_.take_proof(peer, hello, false);
    wire::Welcome welcome;
    welcome.set_version(wire::kProtocolVersion);
    welcome.set_collector("script \x1b[1m");
    welcome.set_heartbeat_ms(heartbeat_ms);
    welcome.set_resumed(resumed);
    if (&channel == &link_->data()) welcome.set_features(wire::kFeatureColumns);
    peer.send(FrameType::kWelcome, welcome);
    step_until(ChannelStep::kOpen, channel);
  }
  void come_up(uint32_t heartbeat_ms = 1000, bool resumed = false) {
    if (!is_trying()) (void)next_attempt();
    control_ = collector_.accept();
    step_until(ChannelStep::kGreeting, link_->control());
    welcome(control_, link_->control(), heartbeat_ms);
    data_ = collector_.accept();
    step_until(ChannelStep::kGreeting, link_->data());
    welcome(data_, link_->data(), heartbeat_ms, resumed);
    EXPECT_TRUE(link_->is_up());
  }
  void cut() {
    control_.close();
    data_.close();
    for (int i = 0; i < 5000 && link_->is_up(); ++i) {
      (void)link_->read(now_ms_, link_->control());
      ::usleep(1000);
    }
    ASSERT_FALSE(link_->is_up());
  }
  // Milliseconds until the next attempt.
  uint64_t next_attempt() {
    for (uint64_t waited = 0; waited < 10'000; ++waited) {
      link_->step(now_ms_ + waited);
      if (!is_trying()) continue;
      now_ms_ += waited;
      return waited;
    }
    ADD_FAILURE() << "no attempt";
    return 0;
  }

  ScriptedCollector collector_;
  Peer control_;
  Peer data_;
  Settings settings_;
  uint64_t now_ms_ = 1'000'000;
  // More than a thread's stack may have.
  std::unique_ptr<Link> link_ = std::make_unique<Link>();
  std::unique_ptr<StreamTable> streams_ = std::make_unique<StreamTable>();
};

}  // namespace collect::agent
