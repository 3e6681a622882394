#include "daemon/control/service/reflection_service.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "formats/core/text/printable.h"

namespace collect::control {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// The file and all that it imports, each once.
void add_files(const FileDescriptor& file, std::set<std::string>& added, auto& response) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  file.CopyJsonNameTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    add_files(*file.dependency(i), added, response);
  }
}

void answer_file(const FileDescriptor* file, const std::string& name, auto& response) {
  if (file == nullptr) {
    response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
    response.mutable_error_response()->set_error_message(
        fmt::format("there is no {} here", printable(name)));
    return;
  }
  std::set<std::string> added;
  add_files(*file, added, *response.mutable_file_descriptor_response());
}

template <class Response>
Response answer_to(const auto& request, const std::vector<std::string>& services) {
  using Request = std::remove_cvref_t<decltype(request)>;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      answer_file(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                  response);
      break;
    case Request::kFileContainingSymbol:
      answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                  request.file_containing_symbol(), response);
      break;
    case Request::kAllExtensionNumbersOfType: {
      const std::string& type = request.all_extension_numbers_of_type();
      if (pool.FindMessageTypeByName(type) == nullptr) {
        answer_file(nullptr, type, response);
      } else {  // nothing is extended
        response.mutable_all_extension_numbers_response()->set_base_type_name(type);
      }
      break;
    }
    case Request::kFileContainingExtension:
      answer_file(nullptr, "extension of " + request.file_containing_extension().containing_type(),
                  response);
      break;
    case Request::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    default:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
  }
  return response;
}

}  // namespace

// One question after the other: nothing is read before the answer was sent.
template <class Package>
class ReflectionService<Package>::Call final : public grpc::ServerBidiReactor<Request, Response>,
                                               public std::enable_shared_from_this<Call> {
 public:
  static Call* open(const ReflectionService& service) {
    std::shared_ptr<Call> call(new Call(service));
    call->service_.live_->enter();
    call->self_ = call;
    std::weak_ptr<Call> weak = call;
    call->watch_id_ = call->service_.live_->add_watch([weak] {
      if (const auto ending = weak.lock()) {
        ending->finish({grpc::StatusCode::UNAVAILABLE, "the collector is shutting down"});
      }
    });
    if (call->watch_id_ == 0) {
      call->finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls run already"});
    } else {
      call->StartRead(&call->request_);
    }
    return call.get();
  }

 private:
  explicit Call(const ReflectionService& service) : service_(service) {}

  void OnReadDone(bool ok) override {
    if (!ok) {
      finish(grpc::Status::OK);
      return;
    }
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    response_ = answer_to<Response>(request_, service_.services_);
    this->StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok && !finished_) this->StartRead(&request_);
  }
  void OnCancel() override { finish({grpc::StatusCode::CANCELLED, "the client went away"}); }
  void OnDone() override {
    const std::shared_ptr<Call> self = std::move(self_);
    if (watch_id_ != 0) service_.live_->remove_watch(watch_id_);
    service_.live_->leave();
  }

  void finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    this->Finish(status);
  }

  const ReflectionService& service_;  // outlives every call: the server waits for them
  uint64_t watch_id_ = 0;
  std::shared_ptr<Call> self_;  // until OnDone
  Request request_;
  Response response_;
  std::mutex mutex_;
  bool finished_ = false;  // guarded by mutex_
};

template <class Package>
grpc::ServerBidiReactor<typename Package::Request, typename Package::Response>*
ReflectionService<Package>::ServerReflectionInfo(grpc::CallbackServerContext*) {
  return Call::open(*this);
}

template class ReflectionService<ReflectionV1>;
template class ReflectionService<ReflectionV1Alpha>;

}  // namespace collect::control
