// A collector with a root of its own, and agents that are fakes.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "daemon/collector.h"
#include "daemon/symbolize/symbolizer.h"
#include "storage/posix_fs.h"
#include "tests/fakes/fake_agent.h"

namespace collect::daemon {

using fakes::FakeAgent;
using fakes::FakeProcess;

template <class T>
class Waiting {
 public:
  control::Callback<T> callback() {
    return [state = state_](Result<T> result) {
      std::lock_guard lock(state->mutex);
      EXPECT_FALSE(state->result.has_value()) << "answered twice";
      state->result = std::move(result);
      state->came.notify_all();
    };
  }
  Result<T> get() {
    std::unique_lock lock(state_->mutex);
    const bool came = state_->came.wait_for(lock, fakes::kPatience,
                                            [this] { return state_->result.has_value(); });
    if (!came) return Error{Code::kCancelled, "no answer came"};
    return *state_->result;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<T>> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() {
    spdlog::set_level(spdlog::level::off);
    std::string pattern = std::filesystem::temp_directory_path() / "collector_test_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    ingest::IngestOptions options;
    options.listen = "127.0.0.1:0";
    options.version = "collector under test";
    options.storage.root = root_;
    options.storage.symbolize = false;
    auto collector =
        Collector::create(options, fs_, {}, {symbolize::symbolizer_program(), {}, {"/"}});
    EXPECT_TRUE(collector.ok());
    collector_ = std::move(collector).value();
    collector_->run();
  }
  ~CollectorTest() override {
    collector_.reset();
    std::filesystem::remove_all(root_);
  }

  // Waits until the collector shows an agent that fits.
  api::Agent shown(const std::function<bool(const api::Agent&)>& fits) {
    const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      for (const api::Agent& agent : collector_->agents("")) {
        if (fits(agent)) return agent;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no such agent";
    return {};
  }
  api::Agent shown(const std::string& process, api::AgentState state) {
    return shown(
        [&](const api::Agent& a) { return a.process_name() == process && a.state() == state; });
  }
  void begin(FakeAgent& agent, uint32_t recording, uint32_t events) {
    ASSERT_TRUE(agent.start_recording(recording));
    ASSERT_TRUE(agent.open_stream(recording, 7));
    ASSERT_TRUE(agent.send_events(recording, 0, events));
    ASSERT_TRUE(agent.wait_stored(recording, events));
  }
  api::DetailResponse detail(api::DetailMode mode, const api::DetailRequest& request) {
    Waiting<api::DetailResponse> waiting;
    collector_->set_detail(mode, request, waiting.callback());
    const auto response = waiting.get();
    EXPECT_TRUE(response.ok()) << to_string(response.error());
    return response.ok() ? *response : api::DetailResponse();
  }

  std::string root_;
  storage::PosixFs fs_;
  std::unique_ptr<Collector> collector_;
};

inline FakeProcess process(uint8_t id, const std::string& name, uint32_t pid) {
  FakeProcess made;
  made.id_byte = id;
  made.name = name;
  made.pid = pid;
  made.tag = "tag-" + name;
  return made;
}

}  // namespace collect::daemon
