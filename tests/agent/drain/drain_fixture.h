// One drain thread over the fake recorder, and one scripted collector.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "agent/drain/drain.h"
#include "tests/agent/fake_recorder.h"
#include "tests/agent/scripted_collector.h"

namespace collect::agent {

using wire::FrameType;

class DrainTest : public testing::Test {
 protected:
  void SetUp() override {
    fake::reset();
    fake::add_module("/usr/bin/program");
  }
  void TearDown() override {
    collector.control.close();
    collector.data.close();
    // A program does not wait for longer than each of these; streams go with the test.
    for (int i = 0; i < 20; ++i) drain_stop(0);
  }

  Settings connecting() {
    Settings settings;
    settings.role = Role::kConnect;
    set_address(settings, collector.address());
    return settings;
  }
  static Settings listening(const std::string& address) {
    Settings settings;
    settings.role = Role::kListen;
    set_address(settings, address);
    return settings;
  }
  static void set_address(Settings& settings, const std::string& address) {
    ASSERT_LT(address.size(), sizeof settings.address);
    std::memcpy(settings.address, address.c_str(), address.size() + 1);
  }

  // Waits for something that another thread is about to do; false when it does not for a minute.
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 60000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  static uint16_t listen_port() {
    EXPECT_TRUE(eventually([] { return drain_listen_port() != 0; }));
    return drain_listen_port();
  }

  // Whether the stored bytes are exactly the first `count` index records of the stream.
  void expect_index(uint32_t stream_id, uint64_t count) {
    const StoredLane& stored = collector.lane(stream_id, 0);
    EXPECT_EQ(stored.repeats, 0u);
    EXPECT_EQ(stored.jumps, 0u);
    ASSERT_EQ(stored.next, count);
    ASSERT_EQ(stored.bytes.size(), count * 32);
    for (uint64_t n = 0; n < count; ++n) {
      const auto record = fake::index_record(stream_id, n);
      ASSERT_EQ(std::memcmp(stored.bytes.data() + n * 32, record.bytes, 32), 0) << "record " << n;
    }
  }

  ScriptedCollector collector;
};

}  // namespace collect::agent
