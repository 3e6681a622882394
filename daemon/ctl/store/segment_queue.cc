#include "daemon/ctl/store/segment_queue.h"

#include <chrono>
#include <istream>
#include <memory>
#include <thread>
#include <utility>

#include "daemon/upload/store.h"
#include "formats/core/threads.h"

namespace collect::ctl {
namespace {

constexpr std::chrono::seconds kAgain{1};

}  // namespace

// An ack waits for it: the bound of uploads is not for it.
SegmentQueue::SegmentQueue(const upload::StoreLocation& position, storage::Fs& fs, std::string root,
                           std::function<void(uint64_t id)> done)
    : place_{position.url, position.endpoint, position.region, 0},
      fs_(fs),
      root_(std::move(root)),
      done_(std::move(done)) {}

void SegmentQueue::read(std::istream& in) {
  std::string line;
  while (std::getline(in, line)) {
    auto request = upload::SegmentRequest::parse(line);
    if (request.ok()) {
      add(std::move(*request));
    } else {
      note(request.error().message);
    }
  }
}

std::string SegmentQueue::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void SegmentQueue::note(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  problem_ = problem;
}

void SegmentQueue::add(upload::SegmentRequest request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  changed_.notify_one();
  // Those that the system does not start now are asked for with the next request.
  while (threads_ < kThreads) {
    auto started = start_thread("segments", [this] { serve(); });
    if (!started.ok()) {
      if (threads_ == 0) problem_ = started.error().message;
      return;
    }
    started->detach();
    ++threads_;
  }
}

void SegmentQueue::serve() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !requests_.empty(); });
    const upload::SegmentRequest request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    // Until it has gone: what has no memory now has some later.
    while (!contain([&] { send(request); }).ok()) std::this_thread::sleep_for(kAgain);
    done_(request.id);
  }
}

// A request that fails is made again for as long as it takes: agents hold what is not acknowledged.
void SegmentQueue::send(const upload::SegmentRequest& request) {
  thread_local std::unique_ptr<upload::Store> store;
  while (true) {
    Status sent;
    if (store == nullptr) {
      auto opened = upload::Store::open(place_, [](const Error&) {});
      if (opened.ok()) {
        store = std::move(*opened);
      } else {
        sent = opened.error();
      }
    }
    if (store != nullptr) {
      sent = upload::SegmentUpload(store->client(), store->retries(), fs_, root_, positions_)
                 .send(request);
    }
    const bool has_no_place = !sent.ok() && sent.code() == Code::kUnsupported;
    note(sent.ok() || has_no_place ? "" : request.session + ": " + to_string(sent.error()));
    if (sent.ok() || has_no_place) return;
    std::this_thread::sleep_for(kAgain);
  }
}

}  // namespace collect::ctl
