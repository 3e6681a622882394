#include "daemon/ingest/core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

namespace collect::ingest {
namespace {

unsigned threads_or(unsigned wanted, unsigned limit) {
  if (wanted != 0) return std::min(wanted, limit);
  return std::clamp(std::thread::hardware_concurrency(), 1u, limit);
}

}  // namespace

void RememberedProcesses::add(const ProcessId& id) {
  std::lock_guard lock(mutex_);
  if (!ids_.insert(id).second) return;
  order_.push_back(id);
  if (order_.size() <= kMaxRememberedProcesses) return;
  ids_.erase(order_.front());
  order_.pop_front();
}

void RememberedProcesses::remove(const ProcessId& id) {
  std::lock_guard lock(mutex_);
  if (ids_.erase(id) != 0) order_.erase(std::find(order_.begin(), order_.end(), id));
}

bool RememberedProcesses::holds(const ProcessId& id) const {
  std::lock_guard lock(mutex_);
  return ids_.contains(id);
}

std::string LineLimit::admit(const std::string& line) {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  if (lines_ == 0 || now - period_start_ > kRefusalLogPeriod) {
    period_start_ = now;
    lines_ = 0;
  }
  if (lines_ >= kRefusalLinesPerPeriod) {
    ++left_out_;
    return {};
  }
  ++lines_;
  if (left_out_ == 0) return line;
  const std::string tail = " (" + std::to_string(left_out_) + " such lines were left out before)";
  left_out_ = 0;
  return line + tail;
}

IngestCore::IngestCore(IngestOptions given, storage::Fs& file_system, IngestObserver& watcher)
    : options(std::move(given)),
      fs(file_system),
      observer(watcher),
      buffers(std::make_shared<BufferPool>(kMaxReadBuffers)),
      writers(threads_or(options.writer_threads, kMaxWriterThreads)),
      pipe_world{&writers, &fs, &options.storage, &counters, options.queue_bytes},
      token_(options.token) {}

std::string IngestCore::token() const {
  std::lock_guard lock(token_mutex_);
  return token_;
}

void IngestCore::set_token(std::string token) {
  std::lock_guard lock(token_mutex_);
  token_ = std::move(token);
}

void IngestCore::refused(const std::string& peer, const std::string& reason) {
  counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
  const std::string line = refusal_lines.admit("refused " + peer + ": " + reason);
  if (!line.empty()) spdlog::warn("{}", line);
}

}  // namespace collect::ingest
