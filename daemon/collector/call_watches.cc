#include "daemon/collector/call_watches.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/symbolize/child_program.h"
#include "formats/core/threads.h"

namespace collect::daemon {
namespace {

// A watch without an end of its own lasts as long as the recording. A program may write as much.
constexpr std::chrono::hours kLongest{24 * 365};

}  // namespace

CallWatches::CallWatches(std::string program, symbolize::SymbolizerOptions symbols)
    : program_(std::move(program)), symbols_(std::move(symbols)) {}

CallWatches::~CallWatches() {
  stop();
}

void CallWatches::stop() {
  std::map<control::WatchId, std::shared_ptr<Watch>> watches;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    watches.swap(watches_);
  }
  for (const auto& [id, watch] : watches) watch->stop = true;
  watches.clear();  // joins them
}

void CallWatches::join_ended() {
  std::erase_if(watches_, [](const auto& each) {
    if (!each.second->is_over) return false;
    return true;  // joins it
  });
}

Result<control::WatchId> CallWatches::watch(const std::string& directory, const std::string& name,
                                            const control::api::WatchCallsRequest& request,
                                            control::CallWatcher watcher) {
  control::FeedRequest feed;
  feed.directory = directory;
  feed.finds_names = !symbols_.program.empty();
  feed.symbol_directories = symbols_.directories;
  feed.symbol_roots = symbols_.roots;
  feed.wanted = request;
  const std::lock_guard lock(mutex_);
  if (stopping_) return Error{Code::kUnavailable, "the collector is shutting down"};
  join_ended();
  if (watches_.size() >= kMaxCallWatches) {
    return Error{
        Code::kLimit,
        fmt::format("calls are followed by {} watches already; end one of them", kMaxCallWatches)};
  }
  const auto watch = std::make_shared<Watch>();
  watch->watcher = std::move(watcher);
  const auto entry = watches_.emplace(++last_id_, watch).first;
  auto started = start_thread("calls", [this, watch, feed = std::move(feed), name] {
    const Status done = contain([&] { run(*watch, feed, name); });
    if (!done.ok()) end(*watch, done.error());
    watch->is_over = true;
  });
  if (!started.ok()) {
    watches_.erase(entry);
    return started.error();
  }
  watch->thread = std::move(*started);
  return last_id_;
}

void CallWatches::unwatch(control::WatchId id) {
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;  // stop() has it
    watch = found->second;
  }
  watch->stop = true;
  const std::lock_guard calling(watch->calling);  // waits for a call that runs
  watch->ended = true;
}

void CallWatches::run(Watch& watch, const control::FeedRequest& request,
                      const std::string& name) const {
  const std::string frame = control::feed_frame(control::FeedKind::kRequest, request.body());
  control::FeedReader reader;
  Status said;
  const auto take_frame = [&](control::FeedKind kind, std::string_view body) -> Status {
    if (kind == control::FeedKind::kError) {
      said = Error{Code::kInvalidArgument, std::string(body)};
      return {};
    }
    control::api::CallBatch batch;
    if (!batch.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
      return Error{Code::kDamaged, "it sent bytes that are no message"};
    }
    batch.set_session(name);
    const std::lock_guard calling(watch.calling);
    if (!watch.ended) watch.watcher.on_batch(std::move(batch));
    return {};
  };
  const symbolize::ChildBounds bounds{kLongest, UINT64_MAX, &watch.stop};
  const auto ending = symbolize::run_child(
      {program_}, Bytes(reinterpret_cast<const uint8_t*>(frame.data()), frame.size()), bounds,
      [&](Bytes bytes) { return reader.take(bytes, take_frame); });
  if (!ending.ok()) {
    said = ending.error();
  } else if (!ending->fault.empty()) {
    said = Error{Code::kDamaged, "following the calls ended: " + ending->fault};
  } else if (said.ok() && !reader.is_between_frames()) {
    said = Error{Code::kDamaged, "following the calls ended in the middle of a message"};
  }
  end(watch, said);
}

void CallWatches::end(Watch& watch, const Status& said) {
  const std::lock_guard calling(watch.calling);
  if (std::exchange(watch.ended, true)) return;
  const Status done = contain([&] { watch.watcher.on_end(said); });
  if (!done.ok()) report_fault("calls", done.error());
}

}  // namespace collect::daemon
