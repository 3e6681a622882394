// An agent that does nothing wrong while someone else attacks: its recording is what an attack
// must not harm.
#pragma once

#include <gtest/gtest.h>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {

class Witness {
 public:
  Witness(CollectorProcess& collector, uint32_t pid)
      : collector_(collector), pid_(pid), agent_(collector.ingest_port(), pid) {
    EXPECT_TRUE(agent_.ready) << "the witness was not welcomed";
    record();
  }

  // Some events more, sent and acknowledged.
  void record() {
    EXPECT_TRUE(agent_.data.send(page_bytes(1, recorded_, events(1000 + recorded_, kPageEvents))));
    recorded_ += kPageEvents;
    EXPECT_TRUE(agent_.control.receive_ack(1, recorded_)) << "the witness was dropped";
  }

  // Ends the recording: its session is complete, with every event, and `verify` agrees.
  void expect_whole() {
    record();
    EXPECT_TRUE(close_stream(agent_.data, 1, recorded_) && end_recording(agent_.data, 1));
    const auto sessions = sealed_sessions(collector_.root(), static_cast<int>(pid_));
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].totals().events, recorded_);
    EXPECT_EQ(sessions[0].totals().lost, 0u);
    const Ending verified = collector_.ctl({"verify", sessions[0].directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.describe() << verified.output;
  }

 private:
  static constexpr uint32_t kPageEvents = 200;

  CollectorProcess& collector_;
  const uint32_t pid_;
  RawAgent agent_;
  uint64_t recorded_ = 0;
};

}  // namespace collect::e2e
