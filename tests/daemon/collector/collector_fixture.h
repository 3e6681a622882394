// A collector with a root of its own, and agents that are fakes.
#pragma once

#include <fcntl.h>

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

#include "daemon/collector/collector.h"
#include "daemon/symbolize/lookup/symbol_file.h"
#include "daemon/symbolize/symbolizer.h"
#include "storage/fs/posix_fs.h"
#include "tests/fakes/fake_agent.h"

namespace collect::daemon {

using fakes::FakeAgent;
using fakes::FakeProcess;

inline api::AttachAgentRequest attach_request(const std::string& address) {
  api::AttachAgentRequest request;
  request.set_address(address);
  return request;
}

inline api::StopSessionRequest stop_request(const api::Selector& target = {}) {
  api::StopSessionRequest request;
  *request.mutable_target() = target;
  return request;
}

template <class Request>
Request named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

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
  explicit CollectorTest(const attach::AttachOptions& devices = {}, bool symbolize = false,
                         bool pack = false) {
    spdlog::set_level(spdlog::level::off);
    std::string pattern = std::filesystem::temp_directory_path() / "collector_test_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    CollectorOptions options;
    options.ingest.listen = "127.0.0.1:0";
    options.ingest.version = "collector under test";
    options.ingest.storage.root = root_;
    options.ingest.storage.symbolize = symbolize;
    options.devices = devices;
    options.pack = pack;
    options.symbols = {symbolize::symbolizer_program(), {}, {"/"}};
    auto collector = Collector::create(std::move(options), fs_);
    EXPECT_TRUE(collector.ok());
    collector_ = std::move(collector).value();
    EXPECT_TRUE(collector_->run().ok());
  }
  ~CollectorTest() override {
    collector_.reset();
    std::filesystem::remove_all(root_);
  }

  // Waits until the collector shows an agent that fits.
  api::Agent shown(const std::function<bool(const api::Agent&)>& fits) {
    const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      for (const api::Agent& agent : collector_->agents({})) {
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
  Result<api::Agent> attach(const std::string& address) {
    Waiting<api::Agent> attached;
    collector_->methods().call(attach_request(address), attached.callback());
    return attached.get();
  }
  Result<api::Agent> detach(const std::string& name) {
    Waiting<api::Agent> detached;
    collector_->methods().call(named<api::DetachAgentRequest>(name), detached.callback());
    return detached.get();
  }
  Result<api::GetTriggersResponse> triggers_of(const api::Selector& target) {
    api::GetTriggersRequest request;
    *request.mutable_target() = target;
    Waiting<api::GetTriggersResponse> shown;
    collector_->methods().call(request, shown.callback());
    return shown.get();
  }
  // Of an agent that waits to be dialled: `accept` takes the next connection.
  template <class Accept>
  void answer_dials(FakeAgent& agent, Accept accept) {
    auto control = accept();
    ASSERT_TRUE(control.receive_type(wire::FrameType::kDial).has_value());
    ASSERT_TRUE(agent.open_control(std::move(control), true));
    auto data = accept();
    ASSERT_TRUE(data.receive_type(wire::FrameType::kDial).has_value());
    ASSERT_TRUE(agent.open_data(std::move(data), true));
  }
  // Of the only agent that is meant.
  Result<api::DetailOutcome> detail(const control::DetailCommand& command) {
    Waiting<std::vector<api::DetailOutcome>> waiting;
    collector_->methods().call(command, waiting.callback());
    const auto outcomes = waiting.get();
    if (!outcomes.ok()) return outcomes.error();
    EXPECT_EQ(outcomes->size(), 1u);
    return outcomes->front();
  }

  std::string root_;
  storage::PosixFs fs_;
  std::unique_ptr<Collector> collector_;
};

// This program as a module of a process; it has collector_test_landmark().
inline wire::Modules this_program() {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const auto elf =
      symbolize::SymbolFile::open(::open(self.c_str(), O_RDONLY | O_CLOEXEC), self, {});
  EXPECT_TRUE(elf.ok());
  wire::Modules modules;
  wire::Module* module = modules.add_modules();
  module->set_module_id(5);
  module->set_path(self);
  module->set_build_id(std::string((*elf)->build_id().begin(), (*elf)->build_id().end()));
  module->set_size((*elf)->image_bytes());
  return modules;
}
inline bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
  while (!holds() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return holds();
}

inline api::Selector any(const std::string& word) {
  api::Selector selector;
  selector.set_any(word);
  return selector;
}

inline FakeProcess process(uint8_t id, const std::string& name, uint32_t pid) {
  FakeProcess made;
  made.id_byte = id;
  made.name = name;
  made.pid = pid;
  made.tag = "tag-" + name;
  return made;
}

}  // namespace collect::daemon
