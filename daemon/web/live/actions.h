// What the buttons of the live page do: a POST becomes one call of the collector, as the control
// plane makes it, and its outcome an answer.
#pragma once

#include <string_view>

#include "daemon/control/collector_api.h"
#include "daemon/web/web_content.h"

namespace collect::web {

class Actions final : public WebActions {
 public:
  // `collector` outlives it and every answer.
  explicit Actions(control::CollectorApi& collector) : collector_(collector) {}

  bool is_action(std::string_view path) const override;
  // The body is {"session": "session_…/pid_N", …}; WEB.md "Paths" has the rest.
  void run(const HttpRequest& request, AnswerTo answer) override;

 private:
  control::CollectorApi& collector_;
};

}  // namespace collect::web
