// What the buttons of the live page do: a POST becomes one call of the collector, as the control
// plane makes it, and its outcome an answer.
#pragma once

#include <functional>
#include <string>

#include "daemon/control/collector_api.h"
#include "daemon/web/http/http_answer.h"
#include "daemon/web/http/http_request.h"

namespace collect::web {

// Exactly once, on any thread.
using AnswerTo = std::function<void(HttpAnswer)>;

class Actions {
 public:
  // `collector` outlives it and every answer.
  explicit Actions(control::CollectorApi& collector) : collector_(collector) {}

  // Whether this path is an action.
  static bool is_action(std::string_view path);
  // The body is {"session": "session_…/pid_N", …}; WEB.md "Paths" has the rest.
  void run(const HttpRequest& request, AnswerTo answer);

 private:
  control::CollectorApi& collector_;
};

// The word of `key` in a body that is one JSON object. kInvalidArgument: there is none.
Result<std::string> word_in(const std::string& body, const char* key);

}  // namespace collect::web
