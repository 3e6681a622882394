// One session's queue and what it stores, driven by hand, and what it reported.
#pragma once

#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "daemon/ingest/session/core.h"
#include "daemon/ingest/session/session_queue.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/storage/fault_fs.h"

namespace collect::ingest {

class SessionQueueTest : public IngestTest {
 protected:
  SessionQueueTest() { options_.data_threads = 1; }
  ~SessionQueueTest() override {
    let_go();
    if (core_) core_->stop_threads();
    loop_.run();
    queue_.reset();
  }
  // With options_ as the test left them.
  void begin() {
    queue_.reset();  // what they have is of the core before
    account_.reset();
    core_ = std::make_unique<IngestCore>(options_, *fs_, *observer_);
    account_ = core_->budget.account(principal::Principal::of_uid(1));
    queue_ = std::make_shared<SessionQueue>(
        core_->queue_dependencies, loop_.io().get_executor(), account_,
        [this](SessionReport report) { take(std::move(report)); });
  }
  void open(uint32_t recording = 1) {
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.recording = recording;
    identity.process_name = "fake";
    open_as(*queue_, identity);
    ASSERT_TRUE(loop_.run_until([this] { return opened_.has_value() || last_.failed; }));
  }
  static void open_as(SessionQueue& queue, const storage::SessionIdentity& identity) {
    queue.push([identity](StoredSession& session) { return session.open(identity, std::nullopt); });
  }
  void resume(const std::string& directory) {
    queue_->push([directory](StoredSession& session) { return session.resume(directory); });
  }

  // ---- tasks
  void push(const storage::StreamInfo& stream) {
    queue_->push([=](StoredSession& session) { return session.writer().open_stream(stream); });
  }
  void push(const storage::StreamEnd& end) {
    queue_->push([=](StoredSession& session) { return session.close_stream(end); });
  }
  void push(const storage::FunctionFilter& filter) {
    queue_->push([=](StoredSession& session) { return session.writer().function_filter(filter); });
  }
  void push(const storage::ClockSync& sync) {
    queue_->push([=](StoredSession& session) { return session.writer().clock_sync(sync); });
  }
  void push(const storage::DetailStateChange& change) {
    queue_->push(
        [=](StoredSession& session) { return session.change_detail(change, DetailMode::kOff); });
  }
  void push(const ArrivedStalls& stalls) {
    queue_->push([=](StoredSession& session) { return session.add_stalls(stalls); });
  }
  void push(const EventsWanted& wanted) {
    queue_->push([=](StoredSession& session) {
      session.watch(wanted);
      return Status();
    });
  }
  void push_process_end(const storage::ProcessEnd& end, uint64_t lost_without_stream) {
    queue_->push([=](StoredSession& session) {
      session.writer().set_process_end(end);
      session.writer().set_lost_without_stream(lost_without_stream);
      return Status();
    });
  }
  void want_positions(uint64_t ticket) {
    queue_->push([=](StoredSession& session) {
      session.want_positions(ticket);
      return Status();
    });
  }
  // The bytes have to stay until they are stored.
  void push_pages(std::vector<Page> pages) {
    queue_->push([pages = std::move(pages), this](StoredSession& session) {
      return session.store(pages, unpacker_);
    });
  }
  // Of stream 1.
  void push_page(uint64_t first, Bytes events) {
    push_pages({Page{fakes::index_page_header(1, first, 1), events, {}}});
  }
  void ask(std::optional<Result<std::string>>& answer) {
    queue_->command([](storage::Session& writer) -> Result<std::string> { return writer.name(); },
                    [&answer](Result<std::string> result) { answer.emplace(std::move(result)); });
  }

  // ---- what becomes of them
  void take(SessionReport report) {
    if (report.opened) opened_ = report.opened;
    if (report.failed) failed_ = report.failed;
    if (report.sealed) sealed_ = report.sealed;
    suspended_ += report.suspended ? 1 : 0;
    answered_ += report.positions.size();
    if (report.stalls_next != 0) stalls_next_ = report.stalls_next;
    for (const auto& [stream, position] : report.stored) stored_[stream] = position;
    last_ = std::move(report);
  }
  // Everything that was pushed is committed.
  void settle() {
    std::optional<Result<std::string>> committed;
    ask(committed);
    ASSERT_TRUE(loop_.run_until([&] { return committed.has_value(); }));
  }
  // The data thread stops within an order until it is let go.
  void hold() {
    queue_->command(
        [this](storage::Session&) -> Result<std::string> {
          held_.set_value();
          go_on_.get_future().wait();
          return std::string("held");
        },
        [](const Result<std::string>&) {});
    held_.get_future().wait();
  }
  void let_go() {
    if (!std::exchange(is_let_go_, true)) go_on_.set_value();
  }
  storage::Manifest on_disk() {
    const auto manifest = storage::read_manifest(posix_, opened_->directory);
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? *manifest : storage::Manifest();
  }

  IoLoop loop_;
  IngestObserver* observer_ = &reported_;
  storage::test::FaultFs faulty_;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<principal::Account> account_;
  PageUnpacker unpacker_;
  std::shared_ptr<SessionQueue> queue_;
  std::promise<void> held_, go_on_;
  bool is_let_go_ = false;
  std::optional<SessionReport::Opened> opened_;
  std::optional<Error> failed_;
  std::optional<SessionReport::Sealed> sealed_;
  std::map<uint32_t, storage::StreamPosition> stored_;
  int suspended_ = 0;
  size_t answered_ = 0;  // tickets
  uint64_t stalls_next_ = 0;
  SessionReport last_;
};

}  // namespace collect::ingest
