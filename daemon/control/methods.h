// The methods of the control plane that take one request and answer once. The class that carries a
// method out serves it here under the request's type, and the gRPC service and the live page call
// it: a new method needs a message, a line in the service, and the class that serves it.
//
// Thread rules: serve() belongs to the owner, before the first call. call() may be called from any
// thread; it does not block on the network or a disk. The answer comes exactly once, on a thread of
// the class that serves the method.
#pragma once

#include <any>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "formats/core/result.h"
#include "formats/core/threads.h"

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

  // kUnsupported: no one serves it.
  template <class Response, class Request>
  void call(const Request& request, Callback<Response> done) const {
    const auto found = methods_.find(typeid(Request));
    const auto* const method = found == methods_.end()
                                   ? nullptr
                                   : std::any_cast<Method<Request, Response>>(&found->second);
    if (method == nullptr) {
      done(Error{Code::kUnsupported, "this collector does not serve this method"});
    } else {
      const auto answer = std::make_shared<Answer<Response>>(std::move(done));
      const Status called = contain([&] {
        (*method)(request, [answer](Result<Response> result) { answer->give(std::move(result)); });
      });
      if (!called.ok()) answer->give(called.error());
    }
  }

 private:
  // Given once: the class that serves the method may be short of memory or threads and drop it.
  template <class Response>
  class Answer {
   public:
    explicit Answer(Callback<Response> done) : done_(std::move(done)) {}
    ~Answer() {
      give(Error{Code::kExhausted, "this machine is out of memory or threads; try again"});
    }
    void give(Result<Response> result) noexcept {
      if (given_.exchange(true)) return;
      (void)contain([&] { done_(std::move(result)); });
    }

   private:
    const Callback<Response> done_;
    std::atomic<bool> given_{false};
  };

  std::unordered_map<std::type_index, std::any> methods_;
};

}  // namespace collect::control
