// An online command against a real server with a scripted collector.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "daemon/control/control_server.h"
#include "daemon/ctl/control/commands.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::ctl {

class OnlineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    online_.control = server_->address();
    json_.control = server_->address();
  }

  control::FakeCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
  std::ostringstream out_;
  std::ostringstream err_;
  Online online_{"", false, false, out_, err_};
  Online json_{"", true, false, out_, err_};
};

}  // namespace collect::ctl
