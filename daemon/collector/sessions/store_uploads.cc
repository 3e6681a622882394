#include "daemon/collector/sessions/store_uploads.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/symbolize/child_program.h"
#include "formats/core/threads.h"

namespace collect::daemon {
namespace {

constexpr std::chrono::hours kForever{24 * 365};
constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{60};

// Credentials, proxies and certificates come in variables; our own are no matter of that program.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("COLLECT_")) variables.emplace_back(*variable);
  }
  return variables;
}

}  // namespace

StoreUploads::StoreUploads(upload::StoreRequest request, Remove remove)
    : request_(std::move(request)), remove_(std::move(remove)) {}

Status StoreUploads::start() {
  if (!has_store()) return {};
  auto started = start_thread("store", [this] { serve(); });
  if (!started.ok()) return started.error();
  thread_ = std::move(*started);
  return {};
}

void StoreUploads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

upload::UploadStatus StoreUploads::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void StoreUploads::serve() {
  const symbolize::ChildCommand command{symbolize::own_program("collect-store"),
                                        request_.to_arguments(), environment()};
  const symbolize::ChildBounds bounds{kForever, std::numeric_limits<uint64_t>::max(), &stopping_};
  std::chrono::seconds pause = kFirstPause;
  while (!stopping_) {
    line_.clear();
    const auto began = std::chrono::steady_clock::now();
    const auto ending =
        symbolize::run_child(command, {}, bounds, [this](Bytes bytes) { return take(bytes); });
    if (stopping_) return;
    upload::UploadStatus status = this->status();
    // What it said itself is the better reason.
    if (!ending.ok()) {
      status.problem = ending.error().message;
    } else if (status.problem.empty()) {
      status.problem = "collect-store: " + ending->fault;
    }
    note(std::move(status));
    if (std::chrono::steady_clock::now() - began > kLongestPause) pause = kFirstPause;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [this] { return stopping_.load(); });
    pause = std::min(2 * pause, kLongestPause);
  }
}

Status StoreUploads::take(Bytes bytes) {
  for (const uint8_t byte : bytes) {
    if (byte != '\n') {
      if (line_.size() == kMaxReportBytes) {
        return Error{Code::kLimit, "collect-store: a report is too long"};
      }
      line_ += static_cast<char>(byte);
      continue;
    }
    auto report = upload::StoreReport::parse(line_);
    line_.clear();
    if (!report.ok()) return report.error();
    if (report->remove.empty()) {
      note(std::move(report->status));
    } else {
      remove_(report->remove);
    }
  }
  return {};
}

void StoreUploads::note(upload::UploadStatus status) {
  std::string before;
  {
    const std::lock_guard lock(mutex_);
    before = status_.problem;
    status_ = std::move(status);
    status = status_;
  }
  if (status.problem == before) return;
  if (status.problem.empty()) {
    spdlog::info("store: sessions go to {} again", request_.location.url);
  } else {
    spdlog::warn("store: {}; sessions stay here, and it is tried again", status.problem);
  }
}

}  // namespace collect::daemon
