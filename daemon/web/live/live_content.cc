#include "daemon/web/live/live_content.h"

namespace collect::web {

namespace api = control::api;

std::optional<PageRequest> LiveContent::find_session(std::string_view name) {
  const auto session = collector_.session(full_session_name(name));
  if (!session.ok() || bare_session_name(session->name()) != name) return std::nullopt;
  PageRequest request;
  request.directory = session->path();
  request.can_change = !is_over(*session) || session->symbols() == api::SYMBOLS_STATE_PENDING;
  return request;
}

}  // namespace collect::web
