// A disk that is slow, full or broken.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/dial9_stream.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::index_events;

// Passes everything on, but writes and syncs of index files and streams wait at a gate, or fail.
class GatedFs final : public storage::Fs {
 public:
  Result<std::unique_ptr<storage::File>> open(const std::string& path,
                                              storage::OpenMode mode) override {
    auto file = posix_.open(path, mode);
    const bool is_gated = path.ends_with("index.atf") || path.ends_with("stream.dial9");
    if (!file.ok() || !is_gated) return file;
    return std::unique_ptr<storage::File>(new GatedFile(*this, std::move(file).value()));
  }

  Status make_directories(const std::string& path) override {
    return posix_.make_directories(path);
  }
  Status make_directory(const std::string& path) override { return posix_.make_directory(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return posix_.rename(from, to);
  }
  Status remove_file(const std::string& path) override { return posix_.remove_file(path); }
  Status remove_directory(const std::string& path) override {
    return posix_.remove_directory(path);
  }
  Status sync_directory(const std::string& path) override { return posix_.sync_directory(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return posix_.list_directory(path);
  }
  bool exists(const std::string& path) override { return posix_.exists(path); }
  Result<storage::SpaceInfo> space(const std::string& path) override { return posix_.space(path); }
  Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path) override {
    return posix_.lock(path);
  }

  // For files below a directory of this name; empty: for all. Else only their syncs wait.
  void shut(const std::string& directory = "", bool writes = true) {
    std::lock_guard lock(mutex_);
    is_open_ = false;
    shut_for_ = directory;
    writes_wait_ = writes;
  }
  void let_pass() {
    std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  int waiting() {
    std::lock_guard lock(mutex_);
    return waiting_;
  }
  std::atomic<bool> full{false};
  std::atomic<bool> syncs_fail{false};  // of threads' files
  std::atomic<uint64_t> refused{0};     // writes, because it was full

 private:
  class GatedFile final : public storage::File {
   public:
    GatedFile(GatedFs& fs, std::unique_ptr<storage::File> file) : fs_(fs), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    Result<uint64_t> size() override { return file_->size(); }
    Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
      if (fs_.writes_wait_) fs_.wait_at_gate(path());
      if (fs_.full) {
        ++fs_.refused;
        return Error{Code::kNoSpace, path() + ": write: the test's disk is full"};
      }
      return file_->write_at(offset, parts);
    }
    Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
      return file_->read_at(offset, out);
    }
    Status truncate(uint64_t bytes) override { return file_->truncate(bytes); }
    Status sync() override {
      fs_.wait_at_gate(path());
      if (fs_.syncs_fail && path().find("/thread_") != std::string::npos) {
        return Error{Code::kIo, path() + ": the test's disk lost what was written"};
      }
      return file_->sync();
    }

   private:
    GatedFs& fs_;
    const std::unique_ptr<storage::File> file_;
  };

  void wait_at_gate(const std::string& path) {
    std::unique_lock lock(mutex_);
    if (path.find("/" + shut_for_) == std::string::npos) return;
    ++waiting_;
    changed_.wait(lock, [this] { return is_open_; });
    --waiting_;
  }

  storage::PosixFs posix_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  std::string shut_for_;
  std::atomic<bool> writes_wait_{true};
  int waiting_ = 0;
};

class BackpressureTest : public IngestTest {
 protected:
  BackpressureTest() { fs_ = &gated_; }
  ~BackpressureTest() override {
    gated_.let_pass();
    ingest_.reset();
  }
  GatedFs gated_;
};

TEST_F(BackpressureTest, StalledDiskStopsTheReadingWithoutLoss) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  gated_.shut();
  constexpr uint64_t kEvents = 2'000'000;  // 64 MB: more than socket buffers hold
  std::thread sender([&] {
    for (uint64_t sent = 0; sent < kEvents; sent += 2000) {
      if (!agent.send_events(1, sent, 2000)) return;
    }
  });
  EXPECT_TRUE(eventually([this] { return gated_.waiting() == 1; }));
  EXPECT_EQ(ingest_->counters().events_stored, 0u);
  EXPECT_LE(ingest_->counters().bytes_received, kReadTurnBytes);
  gated_.let_pass();
  sender.join();
  ASSERT_TRUE(agent.close_stream(1, kEvents));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_TRUE(stored_events(*session, 0, kEvents) == index_events(0, kEvents));
}

TEST_F(BackpressureTest, FullDiskEndsItsSessionAndNothingElse) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  gated_.full = true;
  ASSERT_TRUE(agent.send_events(1, 100, 100));
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_STORAGE);
  EXPECT_TRUE(agent.refused()->retry());
  EXPECT_THAT(agent.refused()->reason(), testing::HasSubstr("disk is full"));
  const auto failed = reported_.session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->totals.events, 100u);
  gated_.full = false;
  fakes::FakeProcess process;
  process.id_byte = 2;
  FakeAgent other(process);
  ASSERT_TRUE(other.connect(address()));
  record_all(other, 1, 1, 100);
}

// What could not be synced may be gone: it is never acknowledged.
TEST_F(BackpressureTest, DoesNotAcknowledgeUnsyncedEvents) {
  options_.storage.durability = storage::Durability::kFsync;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  gated_.syncs_fail = true;
  ASSERT_TRUE(agent.send_events(1, 100, 100));
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_STORAGE);
  EXPECT_THAT(agent.refused()->reason(), testing::HasSubstr("lost what was written"));
  EXPECT_EQ(agent.stored(1), 100u);
  const auto failed = reported_.session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  EXPECT_THAT(failed->status, testing::HasSubstr("lost what was written"));
}

// One slow disk stalls its own sessions only: there are more of them than data threads.
class StuckDiskTest : public BackpressureTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(WritesOrSyncs, StuckDiskTest, testing::Bool());

TEST_P(StuckDiskTest, OtherSessionsGoOnAndCommandsAreAnswered) {
  options_.storage.durability = storage::Durability::kFsync;
  options_.heartbeat = milliseconds{100};  // the pace at which stuck threads are looked for
  options_.data_threads = 2;
  start();
  constexpr uint8_t kStuck = 5;
  std::vector<std::unique_ptr<FakeAgent>> stuck;
  fakes::FakeProcess process;
  process.pid = 66;
  for (uint8_t at = 0; at < kStuck; ++at) {
    process.id_byte = static_cast<uint8_t>(20 + at);
    stuck.push_back(std::make_unique<FakeAgent>(process));
    FakeAgent& agent = *stuck.back();
    agent.on_command([](const wire::Command&, wire::CommandResult&) {});
    ASSERT_TRUE(agent.connect(address()));
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(1, 11));
    ASSERT_TRUE(agent.send_events(1, 0, 100));
    ASSERT_TRUE(agent.wait_stored(1, 100));
  }
  // One is to be sealed: that blocks too.
  ASSERT_TRUE(stuck[0]->close_stream(1, 100));
  ASSERT_TRUE(stuck[0]->wait_closed(1));
  gated_.shut("pid_66", GetParam());
  ASSERT_TRUE(stuck[0]->end_recording());
  for (uint8_t at = 1; at < kStuck; ++at) ASSERT_TRUE(stuck[at]->send_events(1, 100, 100));
  EXPECT_TRUE(eventually([this] { return gated_.waiting() == kStuck; }));
  process.pid = 77;
  process.id_byte = 40;
  FakeAgent other(process);
  ASSERT_TRUE(other.connect(address()));
  record_all(other, 1, 1, 10'000);
  wire::Command flush;
  flush.mutable_flush();
  ProcessId stuck_process{};
  stuck_process.fill(21);
  EXPECT_TRUE(answer_of<wire::CommandResult>([&](auto done) {
                ingest_->command(stuck_process, flush, done);
              }).ok());
  EXPECT_EQ(stuck[1]->stored(1), 100u);
  gated_.let_pass();
  for (uint8_t at = 1; at < kStuck; ++at) EXPECT_TRUE(stuck[at]->wait_stored(1, 200));
  EXPECT_TRUE(stuck[0]->wait_recording_ended(1));
}

TEST_F(BackpressureTest, DoesNotAcknowledgeAnEndAfterUnstoredPages) {
  start();
  std::string key;
  {
    FakeAgent agent;
    ASSERT_TRUE(agent.connect(address()));
    key = agent.resume_key();
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(1, 11));
    ASSERT_TRUE(agent.send_events(1, 0, 100));
    ASSERT_TRUE(agent.wait_stored(1, 100));
    gated_.full = true;
    ASSERT_TRUE(agent.send_events(1, 100, 100));
    ASSERT_TRUE(agent.close_stream(1, 200));
    ASSERT_TRUE(agent.end_recording());
    ASSERT_TRUE(agent.wait_refused());
    EXPECT_EQ(agent.refused()->code(), wire::REFUSE_STORAGE);
    EXPECT_TRUE(agent.refused()->retry());
  }
  gated_.full = false;
  FakeAgent again;
  again.resume_key() = key;
  ASSERT_TRUE(again.connect(address()));
  ASSERT_TRUE(again.start_recording(1));
  ASSERT_TRUE(again.open_stream(1, 11));
  ASSERT_TRUE(again.send_events(1, 100, 100));
  ASSERT_TRUE(again.close_stream(1, 200));
  ASSERT_TRUE(again.end_recording());
  ASSERT_TRUE(again.wait_recording_ended(1));
  const auto rest = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->totals.events, 100u);
  EXPECT_EQ(rest->totals.lost_events, 100u);  // they stand in the session before
}

bool was_deferred(const SessionSnapshot& session) {
  return session.state == SessionState::kFailed &&
         session.status.find("sealing failed") != std::string::npos;
}

TEST_F(BackpressureTest, SessionThatFailedIsSealedWhenThereIsRoom) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  gated_.full = true;
  ASSERT_TRUE(agent.send_events(1, 100, 100));
  ASSERT_TRUE(agent.wait_refused());
  const auto failed = reported_.session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  const auto on_disk = storage::read_manifest(posix_, failed->directory);
  ASSERT_TRUE(on_disk.ok());
  EXPECT_EQ(on_disk->state, storage::SessionState::kRecording);
  gated_.full = false;
  EXPECT_TRUE(eventually([&] {
    const auto now = storage::read_manifest(posix_, failed->directory);
    return now.ok() && now->state == storage::SessionState::kFailed;
  }));
  const auto events = stored_events(*failed, 0, 100);
  EXPECT_TRUE(events == index_events(0, 100));
}

TEST_F(BackpressureTest, CompleteSessionIsSealedWhenThereIsRoom) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.close_stream(1, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  gated_.full = true;
  ASSERT_TRUE(agent.end_recording());
  EXPECT_TRUE(agent.wait_recording_ended(1)) << "no one waits for the disk";
  ASSERT_TRUE(reported_.session(was_deferred).has_value());
  const uint64_t refused = gated_.refused;
  EXPECT_TRUE(eventually([&] { return gated_.refused > refused; })) << "not tried again";
  gated_.full = false;
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->status.find("sealing failed"), std::string::npos) << session->status;
  EXPECT_TRUE(session->health.is_complete());
  EXPECT_GE(session->end_time, session->start_time);
  EXPECT_EQ(session->totals.events, 100u);
  EXPECT_TRUE(stored_events(*session, 0, 100) == index_events(0, 100));
  EXPECT_THAT(manifest(*session), testing::HasSubstr("\"complete\""));
}

TEST_F(BackpressureTest, OldSessionIsSealedWhenThereIsRoom) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.close_stream(1, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  gated_.full = true;
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(reported_.session(was_deferred).has_value());
  stop();
  const uint64_t refused = gated_.refused;
  start();
  EXPECT_TRUE(eventually([&] { return gated_.refused > refused; })) << "not tried at the start";
  gated_.full = false;
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_TRUE(stored_events(*session, 0, 100) == index_events(0, 100));
}

TEST_F(BackpressureTest, DoesNotReadAFeedWhileItsDiskStalls) {
  start();
  gated_.shut();
  // More than socket buffers hold.
  const std::vector<uint8_t> one = fakes::dial9_stream(1, 100'000);
  constexpr int kRepeats = 6;
  ASSERT_GT(one.size() * kRepeats, 32u << 20);
  fakes::FrameSocket feed = fakes::FrameSocket::connect(address());
  std::thread sender([&] {
    for (int round = 0; round < kRepeats; ++round) {
      if (!feed.send_bytes(one)) return;
    }
    feed.end_sending();
  });
  EXPECT_TRUE(eventually([this] { return gated_.waiting() == 1; }));
  EXPECT_LE(ingest_->counters().bytes_received, kReadTurnBytes);
  gated_.let_pass();
  sender.join();
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.stored_bytes, one.size() * kRepeats);
}

TEST_F(BackpressureTest, FeedIsSealedWhenThereIsRoom) {
  start();
  fakes::FrameSocket feed = fakes::FrameSocket::connect(address());
  ASSERT_TRUE(feed.send_bytes(fakes::kDial9Example));
  ASSERT_TRUE(reported_.session([](const auto& s) { return s.totals.stored_bytes == 33; }));
  gated_.full = true;
  ASSERT_TRUE(feed.send_bytes(fakes::kDial9Example));
  EXPECT_TRUE(feed.ends());
  const auto failed = reported_.session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  EXPECT_TRUE(reported_.was_shown([](const auto& s) {
    return s.state == SessionState::kSealing && s.status.find("disk is full") != std::string::npos;
  }));
  gated_.full = false;
  EXPECT_TRUE(eventually([&] {
    const auto now = storage::read_manifest(posix_, failed->directory);
    return now.ok() && now->state == storage::SessionState::kFailed;
  }));
  EXPECT_TRUE(ingest_->stop(fakes::kPatience)) << "nothing is under way any more";
}

TEST_F(BackpressureTest, FullDiskEndsAFeed) {
  start();
  fakes::FrameSocket feed = fakes::FrameSocket::connect(address());
  ASSERT_TRUE(feed.send_bytes(fakes::kDial9Example));
  ASSERT_TRUE(reported_.session([](const auto& s) { return s.totals.stored_bytes == 33; }));
  gated_.full = true;
  ASSERT_TRUE(feed.send_bytes(fakes::kDial9Example));
  EXPECT_TRUE(feed.ends());
  const auto failed = reported_.session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->totals.stored_bytes, 33u);
  EXPECT_THAT(failed->status, testing::HasSubstr("disk is full"));
}

}  // namespace
}  // namespace collect::ingest
