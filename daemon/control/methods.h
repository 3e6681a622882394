// The methods of the control plane that take one request and answer once. Whoever carries a method
// out serves it here under the request's type, and the gRPC service and the live page call it: a
// new method needs a message, a line in the service, and the class that serves it.
//
// Thread rules: serve() belongs to the owner, before the first call. call() may be called from any
// thread; it does not block on the network or a disk. The answer comes exactly once, on a thread of
// whoever serves the method.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "formats/core/result.h"

namespace collect::control {

template <class T>
using Callback = std::function<void(Result<T>)>;

template <class Request, class Response>
using Method = std::function<void(const Request&, Callback<Response>)>;

class Methods {
 public:
  // Requests were checked by the caller (request_checks.h).
  template <class Request, class Response>
  void serve(Method<Request, Response> method) {
    methods_[typeid(Request)] = std::move(method);
  }

  // kUnsupported: nobody serves it.
  template <class Response, class Request>
  void call(const Request& request, Callback<Response> done) const {
    const auto found = methods_.find(typeid(Request));
    const auto* const method = found == methods_.end()
                                   ? nullptr
                                   : std::any_cast<Method<Request, Response>>(&found->second);
    if (method == nullptr) {
      done(Error{Code::kUnsupported, "this collector does not serve this method"});
    } else {
      (*method)(request, std::move(done));
    }
  }

 private:
  std::unordered_map<std::type_index, std::any> methods_;
};

}  // namespace collect::control
