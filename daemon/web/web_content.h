// What a server shows: pages of sessions, and what the live page says and does. Everything on the
// server's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/web/http/http_answer.h"
#include "daemon/web/http/http_request.h"
#include "daemon/web/page_request.h"

namespace collect::web {

// Exactly once, on any thread.
using AnswerTo = std::function<void(HttpAnswer)>;

// What a page may ask for besides reading.
class WebActions {
 public:
  virtual ~WebActions() = default;
  virtual bool is_action(std::string_view path) const = 0;
  virtual void run(const HttpRequest& request, AnswerTo answer) = 0;
};

class WebContent {
 public:
  virtual ~WebContent() = default;

  // Of the session of exactly this name, its directory and whether it can change; nothing: there is
  // none.
  virtual std::optional<PageRequest> find_session(std::string_view name) = 0;
  // What the live page says now, as one JSON text. Equal texts: nothing changed.
  virtual std::string look() = 0;
  // Null: there is no collector to be steered.
  virtual WebActions* actions() { return nullptr; }
};

}  // namespace collect::web
