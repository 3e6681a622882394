// The part of the service that hands out the files of sessions and removes them.
#include <utility>
#include <vector>

#include "daemon/control/collector_service.h"
#include "daemon/control/download_call.h"
#include "daemon/control/paging.h"
#include "daemon/control/request_checks.h"

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

}  // namespace

grpc::ServerUnaryReactor* CollectorService::ListFiles(Context* context,
                                                      const api::ListFilesRequest* request,
                                                      api::ListFilesResponse* response) {
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::ListFilesResponse>::open(live_, response);
  collector_.list_files(
      request->name(), [call, request = *request](Result<api::ListFilesResponse> files) {
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
                        bytes = request->bytes()](Result<std::shared_ptr<FileReader>> file) {
                         if (file.ok()) {
                           call->start(std::move(*file), offset, bytes);
                         } else {
                           call->end(to_grpc_status(file.error()));
                         }
                       });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::DeleteSession(Context* context,
                                                          const api::DeleteSessionRequest* request,
                                                          api::DeleteSessionResponse* response) {
  Status named = check_name("name", request->name());
  if (named.ok() && request->name().empty()) {
    named = Error{Code::kInvalidArgument,
                  "name is empty; ListSessions gives the names, as in "
                  "{\"name\": \"sessions/session_20260131_235959/pid_4711\"}"};
  }
  if (!named.ok()) return reply(context, named);
  const auto call = UnaryCall<api::DeleteSessionResponse>::open(live_, response);
  collector_.delete_session(request->name(), [call](Result<api::DeleteSessionResponse> removed) {
    call->answer(std::move(removed));
  });
  return call.get();
}

}  // namespace collect::control
