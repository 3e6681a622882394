// The part of the service that hands out the files of sessions, converts and removes them.
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/control/collector_service.h"
#include "daemon/control/download_call.h"
#include "daemon/control/paging.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/watch_backlog.h"

namespace collect::control {
namespace {

// The page of `all` that the request asks for.
Result<api::ListFilesResponse> page_of_files(api::ListFilesResponse all,
                                             const api::ListFilesRequest& request) {
  std::vector<std::string_view> paths;
  paths.reserve(static_cast<size_t>(all.files_size()));
  for (const api::SessionFile& file : all.files()) paths.push_back(file.path());
  const auto page = page_of(paths, all.session(), request.page_size(), request.page_token());
  if (!page.ok()) return page.error();
  api::ListFilesResponse response;
  response.set_session(all.session());
  response.set_state(all.state());
  for (size_t i = page->begin; i < page->end; ++i) {
    *response.add_files() = std::move(*all.mutable_files(static_cast<int>(i)));
  }
  response.set_next_page_token(page->next_token);
  return response;
}

// Between two messages about how far a conversion is.
constexpr std::chrono::milliseconds kProgressPause{100};

using ConversionCall =
    WatchCall<api::ConvertSessionProgress, NewestBacklog<api::ConvertSessionProgress>>;

}  // namespace

grpc::ServerUnaryReactor* CollectorService::ListFiles(Context* context,
                                                      const api::ListFilesRequest* request,
                                                      api::ListFilesResponse* response) {
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::ListFilesResponse>::open(live_, response);
  collector_.methods().call<api::ListFilesResponse>(
      *request, [call, request = *request](Result<api::ListFilesResponse> files) {
        call->answer(files.ok() ? page_of_files(std::move(*files), request) : std::move(files));
      });
  return call.get();
}

grpc::ServerWriteReactor<api::FileChunk>* CollectorService::DownloadFile(
    Context*, const api::DownloadFileRequest* request) {
  const auto call = DownloadCall::open(live_, downloads_);
  if (call->ended()) return call.get();
  Status sound = check_name("name", request->name());
  if (sound.ok()) sound = check_name("path", request->path());
  if (sound.ok() && request->path().empty()) {
    sound = Error{Code::kInvalidArgument,
                  "path is empty; ListFiles gives the paths, as in {\"path\": \"manifest.json\"}"};
  }
  if (!sound.ok()) {
    call->end(to_grpc_status(sound.error()));
    return call.get();
  }
  collector_.open_file(request->name(), request->path(),
                       [call, offset = request->offset(),
                        bytes = request->size_bytes()](Result<std::shared_ptr<FileReader>> file) {
                         if (file.ok()) {
                           call->start(std::move(*file), offset, bytes);
                         } else {
                           call->end(to_grpc_status(file.error()));
                         }
                       });
  return call.get();
}

grpc::ServerWriteReactor<api::ConvertSessionProgress>* CollectorService::ConvertSession(
    Context*, const api::ConvertSessionRequest* request) {
  const auto call = ConversionCall::open(live_,
                                         "the collector is shutting down; ask again "
                                         "when it is back");
  if (call->ended()) return call.get();
  if (Status sound = check_conversion(*request); !sound.ok()) {
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
  collector_.convert_session(request->name(), request->atf_version(), on_progress,
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

grpc::ServerUnaryReactor* CollectorService::SnapshotSession(
    Context* context, const api::SnapshotSessionRequest* request, api::Session* response) {
  return call(context, check_name("name", request->name()), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::DeleteSession(Context* context,
                                                          const api::DeleteSessionRequest* request,
                                                          api::DeleteSessionResponse* response) {
  return call(context, check_delete(*request), *request, response);
}

}  // namespace collect::control
