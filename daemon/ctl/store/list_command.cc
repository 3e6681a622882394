#include "collect/control/v1/control.pb.h"

#include <fmt/core.h>
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/stored_sessions.h"
#include "daemon/ctl/store/parts.h"
#include "daemon/ctl/store/store_commands.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/upload/commit_object.h"
#include "formats/core/text/figures.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;

Result<api::Session> read_session(upload::Store& store, const std::string& prefix) {
  const auto text = upload::read_object_text(
      store.client(), store.retries(), prefix + storage::kManifestFile, storage::kMaxManifestBytes);
  if (!text.ok()) return text.error();
  const auto manifest = storage::manifest_from_json(*text);
  if (!manifest.ok()) return manifest.error();
  return session_of(*manifest);
}

}  // namespace

int list_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err) {
  const Answer answer{request.json, out, err};
  StoreLine line(err, request.progress);
  const auto store = open_store(request, line);
  if (!store.ok()) return answer.refuse(store.error(), 2);
  const auto chosen = choose_parts(**store, line);
  if (!chosen.ok()) return answer.refuse(chosen.error(), 2);
  api::ListSessionsResponse response;
  Table table({"SESSION", "STATE", "PROCESS", "DEVICE", "EVENTS", "LOST", "URL"});
  table.right(4);
  table.right(5);
  int code = 0;
  for (size_t i = 0; i < chosen->parts.size(); ++i) {
    const ChosenPart& part = chosen->parts[i];
    line.show(fmt::format("reading manifest {} of {}", i + 1, chosen->parts.size()));
    auto read = read_session(**store, part.prefix);
    api::Session session;
    if (read.ok()) {
      session = std::move(*read);
    } else {
      code = 1;
      session.set_state(api::SESSION_STATE_FAILED);
      session.set_status("no manifest: " + read.error().message);
    }
    session.set_name("sessions/" + part.session);
    session.set_path((*store)->url_of(part.prefix));
    table.add({part.session, state_word(session.state()), session.process_name(),
               session.device_id(), with_thousands(session.events()), loss_count(session),
               session.path()});
    *response.add_sessions() = std::move(session);
  }
  line.end();
  out << (request.json ? message_line(response) : table.text(request.columns));
  out.flush();
  for (const UnreadablePart& part : chosen->unreadable) {
    code = 1;
    err << "collectctl: " << printable_sentence(part.error.message) << "\n";
  }
  if (const std::string pending = unfinished_sentence(chosen->unfinished); !pending.empty()) {
    err << "collectctl: " << pending << "\n";
  }
  return code;
}

}  // namespace collect::ctl
