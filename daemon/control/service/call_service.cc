// WatchCalls: what is read of a recording while it grows.
#include <utility>

#include "daemon/control/request_checks.h"
#include "daemon/control/service/calls_backlog.h"
#include "daemon/control/service/service_streams.h"

namespace collect::control {

using CallsWatch = WatchCall<CallsBacklog>;

MessageStream* watch_calls(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                           const api::WatchCallsRequest& request) {
  const auto watch = CallsWatch::open(live);
  if (watch->ended()) return watch.get();
  const Result<api::WatchCallsRequest> checked = checked_calls(request);
  if (!checked.ok()) {
    watch->end_now(to_grpc_status(checked.error()));
    return watch.get();
  }
  CallWatcher watcher;
  watcher.on_batch = [watch](api::CallBatch batch) {
    watch->update([&batch](CallsBacklog& backlog) { backlog.put(std::move(batch)); });
  };
  watcher.on_end = [watch](const Status& status) {
    watch->end_when_sent(status.ok() ? grpc::Status::OK : to_grpc_status(status.error()));
  };
  const Result<WatchId> id = collector.watch_calls(*checked, std::move(watcher));
  if (!id.ok()) {
    watch->end_now(to_grpc_status(id.error()));
    return watch.get();
  }
  watch->set_release([&collector, id = *id] { collector.unwatch_calls(id); });
  return watch.get();
}

}  // namespace collect::control
