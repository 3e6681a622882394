// A running Ingest on a port of its own and a root of its own, and what it reported.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/ingest/ingest.h"
#include "storage/fs/posix_fs.h"
#include "tests/fakes/fake_agent.h"
#include "tests/fakes/log_text.h"

namespace collect::ingest {

// Keeps the newest of everything, and lets tests wait for it.
class Reported final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot& agent) override;
  void agent_removed(AgentId id) override;
  void session_changed(const SessionSnapshot& session) override;

  // The first that fits, as soon as there is one; empty when time is up.
  std::optional<AgentSnapshot> agent(const std::function<bool(const AgentSnapshot&)>& fits);
  std::optional<SessionSnapshot> session(const std::function<bool(const SessionSnapshot&)>& fits);
  std::optional<SessionSnapshot> session_in(SessionState state);
  size_t session_count();
  size_t agent_count();
  bool was(AgentState state);  // any agent, at any time
  // Whether a session was ever shown so.
  bool was_shown(const std::function<bool(const SessionSnapshot&)>& fits);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<AgentId, AgentSnapshot> agents_;
  std::set<AgentState> states_;
  std::map<std::string, SessionSnapshot> sessions_;
  std::vector<SessionSnapshot> shown_;  // all of them
};

class IngestTest : public testing::Test {
 protected:
  IngestTest();
  ~IngestTest() override;

  // With options_ as the test left them.
  void start();
  void stop() { ingest_.reset(); }
  // Before start(): what is logged from then on, from level info, as log_->text().
  void capture_log();
  std::string address() const { return ingest_->address(); }
  // Waits for the callback of `ask`, which gets an Answer<T>.
  template <class T>
  Result<T> answer_of(const std::function<void(Answer<T>)>& ask);

  // One stream of a recording, from its start to its end, acknowledged and sealed.
  void record_all(fakes::FakeAgent& agent, uint32_t recording, uint32_t stream, uint64_t events);
  // The records of a sealed index file, after its header.
  std::vector<uint8_t> stored_events(const SessionSnapshot& session, uint32_t thread,
                                     uint64_t count);
  std::string manifest(const SessionSnapshot& session);

  std::string root_;
  storage::PosixFs posix_;
  storage::Fs* fs_ = &posix_;
  IngestOptions options_;
  Reported reported_;
  std::shared_ptr<fakes::LogText> log_;
  std::unique_ptr<Ingest> ingest_;

 private:
  std::vector<spdlog::sink_ptr> sinks_before_;
};

bool eventually(const std::function<bool()>& holds);

template <class T>
Result<T> IngestTest::answer_of(const std::function<void(Answer<T>)>& ask) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<T>> result;
  };
  auto waiting = std::make_shared<Waiting>();
  ask([waiting](Result<T> result) {
    std::lock_guard lock(waiting->mutex);
    EXPECT_FALSE(waiting->result.has_value()) << "answered twice";
    waiting->result = std::move(result);
    waiting->came.notify_all();
  });
  std::unique_lock lock(waiting->mutex);
  if (!waiting->came.wait_for(lock, fakes::kPatience,
                              [&] { return waiting->result.has_value(); })) {
    return Error{Code::kCancelled, "no answer came"};
  }
  return *waiting->result;
}

}  // namespace collect::ingest
