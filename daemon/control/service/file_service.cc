// DownloadFile and ConvertSession.
#include <chrono>
#include <utility>

#include "daemon/control/request_checks.h"
#include "daemon/control/service/download_call.h"
#include "daemon/control/service/service_streams.h"
#include "daemon/control/service/watch_backlog.h"

namespace collect::control {
namespace {

// Between two messages about how far a conversion is.
constexpr std::chrono::milliseconds kProgressPause{100};

using ConversionCall = WatchCall<NewestBacklog<api::ConvertSessionProgress>>;

}  // namespace

MessageStream* download_file(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::DownloadFileRequest& request,
                             const std::shared_ptr<std::atomic<uint32_t>>& downloads) {
  const auto call = DownloadCall::open(live, downloads);
  if (call->ended()) return call.get();
  Status sound = check_name("name", request.name());
  if (sound.ok()) sound = check_name("path", request.path());
  if (sound.ok() && request.path().empty()) {
    sound = Error{Code::kInvalidArgument,
                  "path is empty; ListFiles gives the paths, as in {\"path\": \"manifest.json\"}"};
  }
  if (!sound.ok()) {
    call->end_now(to_grpc_status(sound.error()));
    return call.get();
  }
  collector.open_file(request.name(), request.path(),
                      [call, offset = request.offset(),
                       bytes = request.size_bytes()](Result<std::shared_ptr<FileReader>> file) {
                        if (file.ok()) {
                          call->start(std::move(*file), offset, bytes);
                        } else {
                          call->end_now(to_grpc_status(file.error()));
                        }
                      });
  return call.get();
}

MessageStream* convert_session(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                               const api::ConvertSessionRequest& request) {
  const auto call = ConversionCall::open(live,
                                         "the collector is shutting down; ask again "
                                         "when it is back");
  if (call->ended()) return call.get();
  if (Status sound = check_conversion(request); !sound.ok()) {
    call->end_now(to_grpc_status(sound.error()));
    return call.get();
  }
  // A client that goes away, or the end of the server, ends the call, and so the conversion.
  const auto on_progress = [call, next = std::chrono::steady_clock::time_point()](
                               uint64_t done_bytes, uint64_t bytes) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return !call->ended();
    next = now + kProgressPause;
    api::ConvertSessionProgress progress;
    progress.set_done_bytes(done_bytes);
    progress.set_total_bytes(bytes);
    call->update([&progress](auto& backlog) { backlog.put(progress); });
    return !call->ended();
  };
  collector.convert_session(request.name(), request.atf_version(), on_progress,
                            [call](Result<api::ConversionEnd> end) {
                              if (!end.ok()) {
                                call->end_now(to_grpc_status(end.error()));
                                return;
                              }
                              call->update([&end](auto& backlog) {
                                api::ConvertSessionProgress last;
                                last.set_done_bytes(end->session().stored_bytes());
                                last.set_total_bytes(end->session().stored_bytes());
                                *last.mutable_end() = std::move(*end);
                                backlog.put(std::move(last));
                              });
                              call->end_when_sent(grpc::Status::OK);
                            });
  return call.get();
}

}  // namespace collect::control
