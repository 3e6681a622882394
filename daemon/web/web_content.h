// What a server shows: pages of sessions, and what the live page says and does. Everything on the
// server's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/web/live/actions.h"
#include "daemon/web/page_request.h"

namespace collect::web {

class WebContent {
 public:
  virtual ~WebContent() = default;

  // Of the session of exactly this name, its directory and whether it can change; nothing: there is
  // none.
  virtual std::optional<PageRequest> find_session(std::string_view name) = 0;
  // What the live page says now, as one JSON text. Equal texts: nothing changed.
  virtual std::string look() = 0;
  // Null: there is no collector to be steered.
  virtual Actions* actions() { return nullptr; }
};

}  // namespace collect::web
