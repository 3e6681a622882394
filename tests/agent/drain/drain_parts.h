// The parts of a drain over the fake recorder, put together as DrainThread has them and called by
// the test; and a link to a scripted collector, with a clock of the test's.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/drain/commands.h"
#include "agent/drain/control_reader.h"
#include "agent/drain/ship/buffering.h"
#include "agent/drain/status_reports.h"
#include "tests/agent/drain/sent_frames.h"
#include "tests/agent/fake_recorder.h"
#include "tests/agent/scripted_collector.h"

namespace collect::agent {

struct DrainParts {
  Settings settings;
  DrainControl control;
  Link link;
  Shipper shipper;
  ProcessPauses pauses{shipper.stalls()};
  DetailWindow detail{settings, shipper.metadata_sender(), pauses};
  RecordingState recording{settings, link, shipper, detail, pauses};
  StartFilter start_filter{settings, shipper.metadata_sender(), recording, control};
  Buffering buffering{settings, shipper.streams().spool()};
  ControlSender sender{link};
  Commands commands{sender, shipper, recording, detail, start_filter, buffering, pauses};
  ControlReader reader{link, sender, shipper, recording, commands};
  StatusReports reports{link, sender, shipper};
};

class DrainPartsTest : public testing::Test {
 protected:
  DrainPartsTest() { fake::reset(); }
  ~DrainPartsTest() override {
    parts_->link.shut(true);
    parts_->shipper.streams().spool().close();
  }

  // Again after each cut. Without `pair` the control channel alone is opened.
  void come_up(bool pair = true) {
    if (settings().role == Role::kNone) {
      settings().role = Role::kConnect;
      const std::string address = collector_.address();
      std::memcpy(settings().address, address.c_str(), address.size() + 1);
      ASSERT_EQ(link().prepare(settings(), parts_->shipper.streams()), nullptr);
    }
    std::thread welcoming([&] { pair ? collector_.welcome_pair() : welcome_control(); });
    const Channel& last = pair ? link().data() : link().control();
    const Channel& first = link().control();
    const auto is_open = [&] {
      return first.step == ChannelStep::kOpen && last.step == ChannelStep::kOpen;
    };
    for (int i = 0; i < 60'000 && !is_open(); ++i) {
      link().step(++now_ms_);
      pollfd waiting[kMaxLinkPolls];
      const size_t count = link().fill_poll(waiting, now_ms_, false);
      (void)poll(waiting, static_cast<nfds_t>(count), 1);
    }
    welcoming.join();
    ASSERT_TRUE(is_open());
    if (pair) parts_->shipper.begin_link(link().resumed(), link().features());
  }
  void cut() {
    link().break_link(now_ms_, "the test cuts it");
    collector_.control.close();
    collector_.data.close();
  }

  // Sends what there is on the data channel, until there is no more or the collector has to read.
  PumpStatus ship() {
    PumpStatus status = PumpStatus::kMoved;
    while (status == PumpStatus::kMoved) {
      status = parts_->shipper.pump(link().data().socket, link().data().out, now_ms_);
      now_ms_ += kFlushMs;  // pages in the making are asked for, too
    }
    return status;
  }
  wire::RecordingEnd shipped_end() {
    wire::RecordingEnd end;
    EXPECT_EQ(ship(), PumpStatus::kNothing);
    EXPECT_TRUE(end.ParseFromString(collector_.take_until(wire::FrameType::kRecordingEnd).body));
    return end;
  }
  // What the collector would be informed of changes of detail.
  std::vector<wire::DetailState> detail_states() {
    std::vector<wire::DetailState> states;
    const auto out = std::make_unique<SendBuffer>();
    EXPECT_TRUE(parts_->shipper.metadata_sender().send(parts_->shipper.streams(), *out));
    for (const SentFrame& frame : take_frames(*out)) {
      if (frame.type != wire::FrameType::kDetailState) continue;
      EXPECT_TRUE(states.emplace_back().ParseFromString(frame.body));
    }
    return states;
  }
  // Stalls that the collector has not been informed of.
  std::vector<wire::Stall> stalls() {
    std::vector<wire::Stall> all;
    const auto out = std::make_unique<SendBuffer>();
    EXPECT_TRUE(parts_->shipper.stalls().send(*out));
    for (const SentFrame& frame : take_frames(*out)) {
      wire::Stalls some;
      EXPECT_TRUE(some.ParseFromString(frame.body));
      all.insert(all.end(), some.stalls().begin(), some.stalls().end());
    }
    return all;
  }

  Settings& settings() { return parts_->settings; }
  Link& link() { return parts_->link; }

  ScriptedCollector collector_;
  uint64_t now_ms_ = 1'000'000;
  // More than a thread's stack may have.
  std::unique_ptr<DrainParts> parts_ = std::make_unique<DrainParts>();

 private:
  void welcome_control() {
    collector_.control = collector_.accept();
    (void)collector_.challenge(collector_.control);
    wire::Welcome welcome;
    welcome.set_version(wire::kProtocolVersion);
    collector_.control.send(wire::FrameType::kWelcome, welcome);
  }
};

}  // namespace collect::agent
