#include "daemon/ctl/control/connection/client.h"

#include <fmt/core.h>
#include <google/protobuf/message_lite.h>

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/ctl/control/connection/control_channel.h"
#include "daemon/ctl/control/messages/text.h"
#include "formats/core/crc32.h"
#include "formats/core/untrusted_pages.h"

namespace collect::ctl {
namespace {

constexpr uint32_t kPageSize = 1000;
// The limits of one list, all pages together, for any answers of a collector.
constexpr uint64_t kMaxListedEntries = 1'000'000;
constexpr uint64_t kMaxListedBytes = 1u << 30;

template <class Request>
Request named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

// For all that the word means; empty: for all that the call takes by default.
template <class Request>
Request about(const std::string& word) {
  Request request;
  if (!word.empty()) request.mutable_target()->set_any(word);
  return request;
}

// What is read and written by the path that a collector gives a session: an absolute one that ends
// with the session's own name. Every session that comes from a collector passes here.
Status check_path(const api::Session& session) {
  const std::string& path = session.path();
  const std::string name = "/" + short_name(session.name());
  const bool is_directory_of_it = path.starts_with('/') && path.ends_with(name) &&
                                  path.find("/../") == std::string::npos &&
                                  path.find('\0') == std::string::npos;
  if (path.empty() || is_directory_of_it) return {};
  return Error{Code::kDamaged,
               fmt::format("the collector says that {} is in {}, which is no directory of it",
                           session.name().substr(0, 200), path.substr(0, 200))};
}

Result<api::Session> checked(Result<api::Session> session) {
  if (session.ok()) COLLECT_TRY(check_path(*session));
  return session;
}

// Asks for each page of a list and hands each to `take`, as it came; the list ends, however long
// the collector would have it. `count`: of a page's entries.
template <class Page, class Connection, class Request, class Count, class Take>
Status read_pages(Connection& connection, Request& request, const char* what,
                  std::chrono::milliseconds deadline, Count count, Take take) {
  UntrustedPages pages("the collector's list of " + std::string(what), kMaxListedEntries,
                       kMaxListedBytes);
  request.set_page_size(kPageSize);
  do {
    request.set_page_token(pages.token());
    auto page = connection.template call<Page>(request, deadline);
    if (!page.ok()) return page.error();
    COLLECT_TRY(pages.turn(static_cast<uint64_t>(count(*page)), page->next_page_token(),
                           page->ByteSizeLong()));
    take(*page);
  } while (pages.goes_on());
  return {};
}

// Every method of the service has a request of its own, with its name.
std::string method_of(const google::protobuf::MessageLite& request) {
  constexpr std::string_view kSuffix = "Request";
  std::string type = request.GetTypeName();  // collect.control.v1.GetStatsRequest
  const size_t dot = type.rfind('.');
  return fmt::format(
      "/{}.Collector/{}", std::string_view(type).substr(0, dot),
      std::string_view(type).substr(dot + 1, type.size() - dot - 1 - kSuffix.size()));
}

}  // namespace

struct Client::Connection {
  explicit Connection(ControlTarget to) : target(std::move(to)) {}

  template <class Response, class Request>
  Result<Response> call(const Request& request, std::chrono::milliseconds deadline) {
    COLLECT_TRY(open());
    const Result<std::string> bytes =
        channel->call(method_of(request), request.SerializeAsString(), deadline);
    if (!bytes.ok()) return bytes.error();
    Response response;
    if (!response.ParseFromString(*bytes)) return no_answer_to(request);
    return response;
  }

  template <class Message, class Request>
  Status read_all(const Request& request, const std::function<bool(const Message&)>& on_message,
                  const std::stop_token& stop = {}) {
    COLLECT_TRY(open());
    Status parsed;
    Message message;
    const Status read = channel->read_all(
        method_of(request), request.SerializeAsString(),
        [&](const std::string& bytes) {
          if (message.ParseFromString(bytes)) return on_message(message);
          parsed = no_answer_to(request);
          return false;
        },
        stop);
    return parsed.ok() ? read : parsed;
  }

  // With the first call.
  Status open() {
    if (channel != nullptr) return {};
    auto opened = open_channel(target);
    if (opened.ok()) channel = std::move(*opened);
    return opened.ok() ? Status() : opened.error();
  }

  Error no_answer_to(const google::protobuf::MessageLite& request) const {
    return {Code::kDamaged, fmt::format("what the collector at {} sends is no answer to {}",
                                        target.address, method_of(request))};
  }

  const ControlTarget target;
  std::unique_ptr<ControlChannel> channel;  // null: not opened yet
};

Client::Client(const ControlTarget& target)
    : address_(target.address), connection_(std::make_unique<Connection>(target)) {}

Client::~Client() = default;

Result<std::vector<api::Agent>> Client::agents(const std::string& word) {
  std::vector<api::Agent> agents;
  api::ListAgentsRequest request;
  request.mutable_target()->set_any(word);
  COLLECT_TRY(read_pages<api::ListAgentsResponse>(
      *connection_, request, "agents", kQuickDeadline,
      [](const auto& page) { return page.agents_size(); },
      [&](auto& page) {
        for (api::Agent& agent : *page.mutable_agents()) agents.push_back(std::move(agent));
      }));
  return agents;
}

Result<std::vector<api::Session>> Client::sessions(const std::string& word) {
  std::vector<api::Session> sessions;
  api::ListSessionsRequest request;
  request.mutable_target()->set_any(word);
  COLLECT_TRY(read_pages<api::ListSessionsResponse>(
      *connection_, request, "sessions", kQuickDeadline,
      [](const auto& page) { return page.sessions_size(); },
      [&](auto& page) {
        for (api::Session& one : *page.mutable_sessions()) sessions.push_back(std::move(one));
      }));
  for (const api::Session& session : sessions) COLLECT_TRY(check_path(session));
  return sessions;
}

Result<api::Session> Client::session(const std::string& name) {
  return checked(
      connection_->call<api::Session>(named<api::GetSessionRequest>(name), kQuickDeadline));
}

Result<api::Agent> Client::attach(const std::string& address) {
  api::AttachAgentRequest request;
  request.set_address(address);
  return connection_->call<api::Agent>(request, kSlowDeadline);
}

Result<api::Agent> Client::detach(const std::string& name) {
  return connection_->call<api::Agent>(named<api::DetachAgentRequest>(name), kSlowDeadline);
}

Result<api::ListThreadsResponse> Client::threads(const std::string& agent) {
  api::ListThreadsResponse all;
  auto request = named<api::ListThreadsRequest>(agent);
  COLLECT_TRY(read_pages<api::ListThreadsResponse>(
      *connection_, request, "threads", kQuickDeadline,
      [](const auto& page) { return page.threads_size(); },
      [&](auto& page) {
        all.set_agent(page.agent());
        for (api::AgentThread& thread : *page.mutable_threads()) {
          *all.add_threads() = std::move(thread);
        }
      }));
  return all;
}

Result<api::StartSessionResponse> Client::start_session(const api::StartSessionRequest& request) {
  return connection_->call<api::StartSessionResponse>(request, kSlowDeadline);
}

Result<api::StopSessionResponse> Client::stop_session(const std::string& word) {
  return connection_->call<api::StopSessionResponse>(about<api::StopSessionRequest>(word),
                                                     kSlowDeadline);
}

Result<api::Manifest> Client::manifest(const std::string& name) {
  return connection_->call<api::Manifest>(named<api::GetManifestRequest>(name), kSlowDeadline);
}

Result<api::ListFilesResponse> Client::files(const std::string& session) {
  api::ListFilesResponse all;
  api::ListFilesRequest request;
  request.set_name(session);
  COLLECT_TRY(read_pages<api::ListFilesResponse>(
      *connection_, request, "files", kSlowDeadline,
      [](const auto& page) { return page.files_size(); },
      [&](const auto& page) {
        all.MergeFrom(page);
        request.set_name(page.session());  // the newest may be another one by now
      }));
  all.clear_next_page_token();
  return all;
}

Result<api::DownloadEnd> Client::download(
    const std::string& session, const std::string& path, uint64_t offset,
    const std::function<Status(const std::string&)>& on_data) {
  api::DownloadFileRequest request;
  request.set_name(session);
  request.set_path(path);
  request.set_offset(offset);
  std::optional<api::DownloadEnd> end;
  Status failure;
  uint64_t at = offset;
  uint32_t crc = 0;
  const std::function<bool(const api::FileChunk&)> take = [&](const api::FileChunk& chunk) {
    if (chunk.has_end()) {
      end = chunk.end();
      return true;
    }
    const Bytes bytes(reinterpret_cast<const uint8_t*>(chunk.data().data()), chunk.data().size());
    if (chunk.offset() != at || chunk.crc32c() != crc32c(bytes)) {
      failure =
          Error{Code::kDamaged,
                fmt::format("{}: what came at byte {} is not what was sent; download it again",
                            path, at)};
      return false;
    }
    crc = crc32c(bytes, crc);
    at += bytes.size();
    failure = on_data(chunk.data());
    return failure.ok();
  };
  const Status read = connection_->read_all(request, take);
  if (!failure.ok()) return failure.error();
  if (!read.ok()) return read.error();
  if (!end || end->size_bytes() != at - offset || end->crc32c() != crc) {
    return Error{
        Code::kDamaged,
        fmt::format("{}: the download ended at byte {} without being whole; download it again",
                    path, at)};
  }
  return *end;
}

Result<api::ConversionEnd> Client::convert_session(
    const api::ConvertSessionRequest& request,
    const std::function<void(const api::ConvertSessionProgress&)>& on_progress) {
  std::optional<api::ConversionEnd> end;
  const std::function<bool(const api::ConvertSessionProgress&)> take =
      [&](const api::ConvertSessionProgress& progress) {
        if (progress.has_end()) end = progress.end();
        on_progress(progress);
        return true;
      };
  const Status read = connection_->read_all(request, take);
  if (!read.ok()) return read.error();
  if (end) return std::move(*end);
  return Error{Code::kDamaged, "the collector closed the stream without a result"};
}

Result<api::Session> Client::snapshot_session(const std::string& name) {
  return connection_->call<api::Session>(named<api::SnapshotSessionRequest>(name), kCopyDeadline);
}

Result<api::Session> Client::pack_session(const std::string& name) {
  return connection_->call<api::Session>(named<api::PackSessionRequest>(name), kCopyDeadline);
}

Result<api::Session> Client::unpack_session(const std::string& name) {
  return connection_->call<api::Session>(named<api::UnpackSessionRequest>(name), kCopyDeadline);
}

Result<api::DeleteSessionResponse> Client::delete_session(const std::string& name) {
  return connection_->call<api::DeleteSessionResponse>(named<api::DeleteSessionRequest>(name),
                                                       kSlowDeadline);
}

Result<api::SetTriggersResponse> Client::set_triggers(const api::SetTriggersRequest& request) {
  return connection_->call<api::SetTriggersResponse>(request, kSlowDeadline);
}

Result<api::GetTriggersResponse> Client::triggers(const std::string& word) {
  return connection_->call<api::GetTriggersResponse>(about<api::GetTriggersRequest>(word),
                                                     kSlowDeadline);
}

Result<api::ArmDetailResponse> Client::arm_detail(const api::ArmDetailRequest& request) {
  return connection_->call<api::ArmDetailResponse>(request, kSlowDeadline);
}

Result<api::StartDetailResponse> Client::start_detail(const api::StartDetailRequest& request) {
  return connection_->call<api::StartDetailResponse>(request, kSlowDeadline);
}

Result<api::StopDetailResponse> Client::stop_detail(const api::StopDetailRequest& request) {
  return connection_->call<api::StopDetailResponse>(request, kSlowDeadline);
}

Result<api::Rules> Client::rules() {
  return connection_->call<api::Rules>(api::GetRulesRequest(), kQuickDeadline);
}

Result<api::Rules> Client::set_rules(const api::SetRulesRequest& request) {
  return connection_->call<api::Rules>(request, kSlowDeadline);
}

Result<api::SetFunctionFilterResponse> Client::set_function_filter(
    const api::SetFunctionFilterRequest& request) {
  return connection_->call<api::SetFunctionFilterResponse>(request, kSlowDeadline);
}

Result<api::AnnotateResponse> Client::annotate(const std::string& word, const std::string& text) {
  api::AnnotateRequest request;
  request.mutable_target()->set_any(word);
  request.set_text(text);
  return connection_->call<api::AnnotateResponse>(request, kSlowDeadline);
}

Result<api::ListDevicesResponse> Client::devices(const std::string& match) {
  api::ListDevicesRequest request;
  request.set_match(match);
  return connection_->call<api::ListDevicesResponse>(request, kQuickDeadline);
}

Result<api::Stats> Client::stats(std::chrono::milliseconds deadline) {
  return connection_->call<api::Stats>(api::GetStatsRequest(), deadline);
}

Status Client::watch_agents(const std::string& word,
                            const std::function<bool(const api::AgentEvent&)>& on_event) {
  // First something short: it tells a wrong address from a collector that leaves.
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchAgentsRequest request;
  request.mutable_target()->set_any(word);
  return connection_->read_all(request, on_event);
}

Status Client::watch_devices(const std::string& match,
                             const std::function<bool(const api::DeviceEvent&)>& on_event) {
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchDevicesRequest request;
  request.set_match(match);
  return connection_->read_all(request, on_event);
}

Status Client::watch_session(const std::string& name, std::chrono::milliseconds interval,
                             const std::function<bool(const api::Session&)>& on_state) {
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchSessionRequest request;
  request.set_name(name);
  request.mutable_interval()->set_seconds(interval.count() / 1000);
  request.mutable_interval()->set_nanos(static_cast<int32_t>(interval.count() % 1000 * 1'000'000));
  return connection_->read_all(request, on_state);
}

Status Client::watch_calls(const api::WatchCallsRequest& request,
                           const std::function<bool(const api::CallBatch&)>& on_batch,
                           const std::stop_token& stop) {
  if (auto alive = stats(); !alive.ok()) return alive.error();
  return connection_->read_all(request, on_batch, stop);
}

}  // namespace collect::ctl
