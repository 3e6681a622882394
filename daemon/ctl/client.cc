#include "daemon/ctl/client.h"

#include <fcntl.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/ctl/credentials.h"
#include "daemon/ctl/plain_connection.h"
#include "formats/core/crc32.h"

namespace collect::ctl {
namespace {

constexpr uint32_t kPageSize = 1000;

Code code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return Code::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Code::kAlreadyExists;
    case grpc::StatusCode::DATA_LOSS:
      return Code::kDamaged;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::kUnsupported;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Code::kLimit;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::kPermission;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::kUnavailable;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return Code::kCancelled;
    default:
      return Code::kIo;
  }
}

grpc::ChannelArguments arguments_for(const ControlTarget& target) {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // our errors say it in one line
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a proxy cannot reach our loopback
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  if (!target.tls_name.empty()) {
    arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, target.tls_name);
  }
  return arguments;
}

bool is_plain(const ControlTarget& target) {
  return target.address.starts_with("unix:") || target.tls_ca.empty();
}

void set_deadline(grpc::ClientContext& context, std::chrono::milliseconds deadline) {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
}

}  // namespace

struct Client::Connection {
  using Stub = api::Collector::Stub;

  explicit Connection(const ControlTarget& to) : target(to), address(to.address) {
    auto credentials = channel_credentials(to);
    if (!credentials.ok()) {
      fault = credentials.error();
    } else if (*credentials != nullptr) {
      channel = grpc::CreateCustomChannel(address, *credentials, arguments_for(to));
      stub = api::Collector::NewStub(channel);
    }
  }
  ~Connection() {
    if (plain >= 0) ::close(plain);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Before each call. gRPC would connect by itself, and again after an end, to whoever listens
  // then: so a plain connection is made here, once its server is known, and again by the next call.
  Status open() {
    if (fault) return *fault;
    if (!is_plain(target) || (plain >= 0 && !has_ended(plain))) return {};
    if (plain >= 0) ::close(plain);
    plain = -1;
    const Result<int> connected = connect_plain(address);
    if (!connected.ok()) return connected.error();
    plain = ::fcntl(*connected, F_DUPFD_CLOEXEC, 0);
    grpc::ChannelArguments arguments = arguments_for(target);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    channel = grpc::CreateCustomInsecureChannelFromFd(address, *connected, arguments);
    stub = api::Collector::NewStub(channel);
    return {};
  }

  Error error(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !answered &&
        channel->GetState(false) != GRPC_CHANNEL_READY) {
      const std::string advice = tls_advice(target, status.error_message());
      if (!advice.empty()) {
        return {Code::kUnavailable, "the collector at " + address + ": " + advice};
      }
      return {Code::kUnavailable, "no collector answers at " + address +
                                      "; start collectord, or name its address with --control"};
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return {Code::kUnavailable, "the collector at " + address + " did not answer in time"};
    }
    return {code_of(status.error_code()), status.error_message()};
  }

  template <class Request, class Response>
  Result<Response> call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, std::chrono::milliseconds deadline) {
    if (Status opened = open(); !opened.ok()) return opened.error();
    grpc::ClientContext context;
    set_deadline(context, deadline);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return error(status);
    answered = true;
    return response;
  }

  template <class Request, class Message>
  Status read_all(grpc::ClientContext& context,
                  std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(grpc::ClientContext*,
                                                                               const Request&),
                  const Request& request, const std::function<bool(const Message&)>& on_message) {
    if (Status opened = open(); !opened.ok()) return opened;
    const auto reader = (stub.get()->*method)(&context, request);
    Message message;
    bool wanted = true;
    while (wanted && reader->Read(&message)) {
      answered = true;
      wanted = on_message(message);
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (!wanted || status.ok()) return {};
    return error(status);
  }

  const ControlTarget target;
  const std::string address;
  std::optional<Error> fault;  // no call is made
  int plain = -1;              // the channel's connection once more, to see its end; -1: none
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Stub> stub;
  bool answered = false;  // once: what fails later is no wrong address
};

Client::Client(const ControlTarget& target)
    : address_(target.address), connection_(std::make_unique<Connection>(target)) {}

Client::~Client() = default;

Result<std::vector<api::Agent>> Client::agents(const std::string& word) {
  std::vector<api::Agent> agents;
  api::ListAgentsRequest request;
  request.mutable_target()->set_any(word);
  request.set_page_size(kPageSize);
  do {
    auto page = connection_->call(&Connection::Stub::ListAgents, request, kQuickDeadline);
    if (!page.ok()) return page.error();
    for (api::Agent& agent : *page->mutable_agents()) agents.push_back(std::move(agent));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return agents;
}

Result<std::vector<api::Session>> Client::sessions(const std::string& word) {
  std::vector<api::Session> sessions;
  api::ListSessionsRequest request;
  request.mutable_target()->set_any(word);
  request.set_page_size(kPageSize);
  do {
    auto page = connection_->call(&Connection::Stub::ListSessions, request, kQuickDeadline);
    if (!page.ok()) return page.error();
    for (api::Session& session : *page->mutable_sessions()) sessions.push_back(std::move(session));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return sessions;
}

Result<api::Session> Client::session(const std::string& name) {
  api::GetSessionRequest request;
  request.set_name(name);
  return connection_->call(&Connection::Stub::GetSession, request, kQuickDeadline);
}

Result<api::Agent> Client::attach(const std::string& address) {
  api::AttachAgentRequest request;
  request.set_address(address);
  return connection_->call(&Connection::Stub::AttachAgent, request, kSlowDeadline);
}

Result<api::Agent> Client::detach(const std::string& name) {
  api::DetachAgentRequest request;
  request.set_name(name);
  return connection_->call(&Connection::Stub::DetachAgent, request, kSlowDeadline);
}

Result<api::StartSessionResponse> Client::start_session(const api::StartSessionRequest& request) {
  return connection_->call(&Connection::Stub::StartSession, request, kSlowDeadline);
}

Result<api::StopSessionResponse> Client::stop_session(const std::string& word) {
  api::StopSessionRequest request;
  request.mutable_target()->set_any(word);
  return connection_->call(&Connection::Stub::StopSession, request, kSlowDeadline);
}

Result<api::Manifest> Client::manifest(const std::string& name) {
  api::GetManifestRequest request;
  request.set_name(name);
  return connection_->call(&Connection::Stub::GetManifest, request, kSlowDeadline);
}

Result<api::ListFilesResponse> Client::files(const std::string& session) {
  api::ListFilesResponse all;
  api::ListFilesRequest request;
  request.set_name(session);
  request.set_page_size(kPageSize);
  do {
    auto page = connection_->call(&Connection::Stub::ListFiles, request, kSlowDeadline);
    if (!page.ok()) return page.error();
    all.MergeFrom(*page);
    request.set_name(page->session());  // the newest may be another one by now
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
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
  grpc::ClientContext context;
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
      failure = Error{Code::kDamaged, path + ": what came at byte " + std::to_string(at) +
                                          " is not what was sent; download it again"};
      return false;
    }
    crc = crc32c(bytes, crc);
    at += bytes.size();
    failure = on_data(chunk.data());
    return failure.ok();
  };
  const Status read =
      connection_->read_all(context, &Connection::Stub::DownloadFile, request, take);
  if (!failure.ok()) return failure.error();
  if (!read.ok()) return read.error();
  if (!end || end->size_bytes() != at - offset || end->crc32c() != crc) {
    return Error{Code::kDamaged, path + ": the download ended at byte " + std::to_string(at) +
                                     " without being whole; download it again"};
  }
  return *end;
}

Result<api::ConversionEnd> Client::convert_session(
    const api::ConvertSessionRequest& request,
    const std::function<void(const api::ConvertSessionProgress&)>& on_progress) {
  grpc::ClientContext context;
  std::optional<api::ConversionEnd> end;
  const std::function<bool(const api::ConvertSessionProgress&)> take =
      [&](const api::ConvertSessionProgress& progress) {
        if (progress.has_end()) end = progress.end();
        on_progress(progress);
        return true;
      };
  const Status read =
      connection_->read_all(context, &Connection::Stub::ConvertSession, request, take);
  if (!read.ok()) return read.error();
  if (end) return std::move(*end);
  return Error{Code::kDamaged, "the collector ended the conversion without a word"};
}

Result<api::Session> Client::snapshot_session(const std::string& name) {
  api::SnapshotSessionRequest request;
  request.set_name(name);
  return connection_->call(&Connection::Stub::SnapshotSession, request, kCopyDeadline);
}

Result<api::DeleteSessionResponse> Client::delete_session(const std::string& name) {
  api::DeleteSessionRequest request;
  request.set_name(name);
  return connection_->call(&Connection::Stub::DeleteSession, request, kSlowDeadline);
}

Result<api::ArmDetailResponse> Client::arm_detail(const api::ArmDetailRequest& request) {
  return connection_->call(&Connection::Stub::ArmDetail, request, kSlowDeadline);
}

Result<api::StartDetailResponse> Client::start_detail(const api::StartDetailRequest& request) {
  return connection_->call(&Connection::Stub::StartDetail, request, kSlowDeadline);
}

Result<api::StopDetailResponse> Client::stop_detail(const api::StopDetailRequest& request) {
  return connection_->call(&Connection::Stub::StopDetail, request, kSlowDeadline);
}

Result<api::Rules> Client::rules() {
  return connection_->call(&Connection::Stub::GetRules, api::GetRulesRequest(), kQuickDeadline);
}

Result<api::Rules> Client::set_rules(const api::SetRulesRequest& request) {
  return connection_->call(&Connection::Stub::SetRules, request, kSlowDeadline);
}

Result<api::SetFunctionFilterResponse> Client::set_function_filter(
    const api::SetFunctionFilterRequest& request) {
  return connection_->call(&Connection::Stub::SetFunctionFilter, request, kSlowDeadline);
}

Result<api::AnnotateResponse> Client::annotate(const std::string& word, const std::string& text) {
  api::AnnotateRequest request;
  request.mutable_target()->set_any(word);
  request.set_text(text);
  return connection_->call(&Connection::Stub::Annotate, request, kSlowDeadline);
}

Result<api::RollContainerResponse> Client::roll_container(const std::string& word) {
  api::RollContainerRequest request;
  request.mutable_target()->set_any(word);
  return connection_->call(&Connection::Stub::RollContainer, request, kSlowDeadline);
}

Result<api::ListDevicesResponse> Client::devices(const std::string& match) {
  api::ListDevicesRequest request;
  request.set_match(match);
  return connection_->call(&Connection::Stub::ListDevices, request, kQuickDeadline);
}

Result<api::Stats> Client::stats(std::chrono::milliseconds deadline) {
  return connection_->call(&Connection::Stub::GetStats, api::GetStatsRequest(), deadline);
}

Status Client::watch_agents(const std::string& word,
                            const std::function<bool(const api::AgentEvent&)>& on_event) {
  // First something short: it tells a wrong address from a collector that leaves.
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchAgentsRequest request;
  request.mutable_target()->set_any(word);
  grpc::ClientContext context;
  return connection_->read_all(context, &Connection::Stub::WatchAgents, request, on_event);
}

Status Client::watch_devices(const std::string& match,
                             const std::function<bool(const api::DeviceEvent&)>& on_event) {
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchDevicesRequest request;
  request.set_match(match);
  grpc::ClientContext context;
  return connection_->read_all(context, &Connection::Stub::WatchDevices, request, on_event);
}

Status Client::watch_session(const std::string& name, std::chrono::milliseconds interval,
                             const std::function<bool(const api::Session&)>& on_state) {
  if (auto alive = stats(); !alive.ok()) return alive.error();
  api::WatchSessionRequest request;
  request.set_name(name);
  request.mutable_interval()->set_seconds(interval.count() / 1000);
  request.mutable_interval()->set_nanos(static_cast<int32_t>(interval.count() % 1000 * 1'000'000));
  grpc::ClientContext context;
  return connection_->read_all(context, &Connection::Stub::WatchSession, request, on_state);
}

}  // namespace collect::ctl
