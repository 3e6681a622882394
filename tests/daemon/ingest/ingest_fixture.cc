#include "tests/daemon/ingest/ingest_fixture.h"

#include <spdlog/cfg/env.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "formats/atf/layout.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Reported::agent_changed(const AgentSnapshot& agent) {
  std::lock_guard lock(mutex_);
  agents_[agent.id] = agent;
  states_.insert(agent.state);
  changed_.notify_all();
}

void Reported::agent_removed(AgentId id) {
  std::lock_guard lock(mutex_);
  agents_.erase(id);
  changed_.notify_all();
}

void Reported::session_changed(const SessionSnapshot& session) {
  EXPECT_FALSE(session.name.empty()) << "shown before it has a name";
  EXPECT_TRUE(session.directory.ends_with(session.name)) << session.directory;
  std::lock_guard lock(mutex_);
  sessions_[session.name] = session;
  shown_.push_back(session);
  changed_.notify_all();
}

bool Reported::was(AgentState state) {
  std::lock_guard lock(mutex_);
  return states_.contains(state);
}

std::optional<AgentSnapshot> Reported::agent(
    const std::function<bool(const AgentSnapshot&)>& fits) {
  std::optional<AgentSnapshot> found;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, fakes::kPatience, [&] {
    for (const auto& [id, agent] : agents_) {
      if (fits(agent)) found = agent;
    }
    return found.has_value();
  });
  return found;
}

std::optional<SessionSnapshot> Reported::session(
    const std::function<bool(const SessionSnapshot&)>& fits) {
  std::optional<SessionSnapshot> found;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, fakes::kPatience, [&] {
    for (const auto& [name, session] : sessions_) {
      if (fits(session)) found = session;
    }
    return found.has_value();
  });
  return found;
}

std::optional<SessionSnapshot> Reported::session_in(SessionState state) {
  return session([state](const SessionSnapshot& session) { return session.state == state; });
}

size_t Reported::session_count() {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

size_t Reported::agent_count() {
  std::lock_guard lock(mutex_);
  return agents_.size();
}

bool Reported::was_shown(const std::function<bool(const SessionSnapshot&)>& fits) {
  std::lock_guard lock(mutex_);
  return std::any_of(shown_.begin(), shown_.end(), fits);
}

IngestTest::IngestTest() {
  std::string pattern = std::filesystem::temp_directory_path() / "ingest_test_XXXXXX";
  root_ = ::mkdtemp(pattern.data());
  spdlog::set_level(spdlog::level::off);
  spdlog::cfg::load_env_levels();  // SPDLOG_LEVEL=info shows what happens
  options_.listen = "127.0.0.1:0";
  options_.version = "collector under test";
  options_.heartbeat = milliseconds{1'000};
  options_.storage.root = root_;
  options_.storage.symbolize = false;
  options_.io_threads = 2;
  options_.data_threads = 2;
}

IngestTest::~IngestTest() {
  ingest_.reset();
  if (log_) spdlog::default_logger()->sinks() = sinks_before_;
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void IngestTest::capture_log() {
  sinks_before_ = spdlog::default_logger()->sinks();
  log_ = std::make_shared<fakes::LogText>();
  spdlog::default_logger()->sinks() = {log_};
  spdlog::set_level(spdlog::level::info);
}

void IngestTest::start() {
  ingest_.reset();
  auto ingest = Ingest::bind(options_, *fs_, reported_);
  ASSERT_TRUE(ingest.ok()) << to_string(ingest.error());
  ingest_ = std::move(ingest).value();
  ASSERT_TRUE(ingest_->run().ok());
}

void IngestTest::record_all(fakes::FakeAgent& agent, uint32_t recording, uint32_t stream,
                            uint64_t events) {
  ASSERT_TRUE(agent.start_recording(recording));
  ASSERT_TRUE(agent.send_module(0, "/bin/fake"));
  ASSERT_TRUE(agent.open_stream(stream, 100 + stream));
  constexpr uint32_t kPageEvents = 2048;
  for (uint64_t sent = 0; sent < events; sent += kPageEvents) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kPageEvents, events - sent));
    ASSERT_TRUE(agent.send_events(stream, sent, count));
  }
  ASSERT_TRUE(agent.close_stream(stream, events));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_stored(stream, events));
  ASSERT_TRUE(agent.wait_closed(stream));
  ASSERT_TRUE(agent.wait_recording_ended(recording));
}

std::vector<uint8_t> IngestTest::stored_events(const SessionSnapshot& session, uint32_t thread,
                                               uint64_t count) {
  std::ifstream file(
      session.directory + "/" + storage::thread_directory_name(thread) + "/index.atf",
      std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t wanted = atf::kHeaderBytes + count * atf::kEventBytes + atf::kFooterBytes;
  EXPECT_EQ(bytes.size(), wanted);
  if (bytes.size() != wanted) return {};
  return {bytes.begin() + atf::kHeaderBytes, bytes.end() - atf::kFooterBytes};
}

std::string IngestTest::manifest(const SessionSnapshot& session) {
  std::ifstream file(session.directory + "/manifest.json", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace collect::ingest
