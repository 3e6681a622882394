// One session's pipe and its writer, driven by hand, and what it reported.
#pragma once

#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "daemon/ingest/core.h"
#include "daemon/ingest/session_pipe.h"
#include "storage/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/storage/fault_fs.h"

namespace collect::ingest {

class SessionPipeTest : public IngestTest {
 protected:
  ~SessionPipeTest() override {
    let_go();
    if (core_) core_->writers.stop();
    loop_.run();
    pipe_.reset();
  }
  // With options_ as the test left them.
  void begin() {
    options_.writer_threads = 1;
    core_ = std::make_unique<IngestCore>(options_, *fs_, *observer_);
    account_ = core_->budget.account(principal::Principal::of_uid(1));
    pipe_ =
        std::make_shared<SessionPipe>(core_->pipe_world, loop_.io().get_executor(), account_,
                                      [this](SessionReport report) { take(std::move(report)); });
  }
  void open(uint32_t recording = 1) {
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.recording = recording;
    identity.process_name = "fake";
    pipe_->push(SessionOpen{identity, std::nullopt});
    ASSERT_TRUE(loop_.run_until([this] { return opened_.has_value() || last_.failed; }));
  }
  void take(SessionReport report) {
    if (report.opened) opened_ = report.opened;
    if (report.failed) failed_ = report.failed;
    if (report.sealed) sealed_ = report.sealed;
    drained_ += report.drained ? 1 : 0;
    suspended_ += report.suspended ? 1 : 0;
    answered_ += report.positions.size();
    if (report.stalls_next != 0) stalls_next_ = report.stalls_next;
    for (const auto& [stream, position] : report.stored) stored_[stream] = position;
    last_ = std::move(report);
  }
  // Everything that was pushed is committed.
  void settle() {
    std::optional<Result<std::string>> committed;
    pipe_->push(order(committed));
    ASSERT_TRUE(loop_.run_until([&] { return committed.has_value(); }));
  }
  // The writer stands still within an order until it is let go.
  void hold() {
    pipe_->push(SessionOrder{[this](storage::SessionWriter&) -> Result<std::string> {
                               held_.set_value();
                               go_on_.get_future().wait();
                               return std::string("held");
                             },
                             [](const Result<std::string>&) {}});
    held_.get_future().wait();
  }
  void let_go() {
    if (!std::exchange(is_let_go_, true)) go_on_.set_value();
  }
  // What one more item is charged.
  uint64_t charged(SessionItem item) {
    const uint64_t before = account_->used(principal::Resource::kQueued);
    pipe_->push(std::move(item));
    return account_->used(principal::Resource::kQueued) - before;
  }
  static SessionOrder order(std::optional<Result<std::string>>& answer) {
    return {[](storage::SessionWriter& writer) -> Result<std::string> { return writer.name(); },
            [&answer](Result<std::string> result) { answer.emplace(std::move(result)); }};
  }
  storage::Manifest on_disk() {
    const auto manifest = storage::read_manifest(posix_, opened_->directory);
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? *manifest : storage::Manifest();
  }

  // Of stream 1. The bytes have to stay until they are written.
  void push_page(uint64_t first, Bytes events) {
    PageBatch batch;
    batch.pages.push_back(Page{fakes::index_page_header(1, first, 1), events, {}});
    batch.bytes = events.size();
    pipe_->push(std::move(batch));
  }

  IoLoop loop_;
  IngestObserver* observer_ = &reported_;
  storage::test::FaultFs faulty_;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<principal::Account> account_;
  std::shared_ptr<SessionPipe> pipe_;
  std::promise<void> held_, go_on_;
  bool is_let_go_ = false;
  std::optional<SessionReport::Opened> opened_;
  std::optional<Error> failed_;
  std::optional<SessionReport::Sealed> sealed_;
  std::map<uint32_t, storage::StreamPosition> stored_;
  int drained_ = 0;
  int suspended_ = 0;
  size_t answered_ = 0;  // tickets
  uint64_t stalls_next_ = 0;
  SessionReport last_;
};

}  // namespace collect::ingest
