#include "daemon/ctl/control/output.h"

namespace collect::ctl {

namespace api = control::v1;

std::string session_table(const std::vector<api::Session>& sessions, size_t columns) {
  Table table({"SESSION", "STATE", "PROCESS", "THREADS", "EVENTS", "LOST", "DETAIL", "TIME",
               "STORED", "STATUS"});
  for (const size_t column : {3, 4, 5, 6, 7, 8}) table.right(column);
  for (const api::Session& session : sessions) {
    table.add({short_name(session.name()), state_word(session.state()),
               printable(session.process_name()), std::to_string(session.threads()),
               with_thousands(session.events()), loss_count(session),
               with_thousands(session.detail_records()), short_duration(session_seconds(session)),
               short_bytes(session.stored_bytes() + session.container_bytes()),
               printable_sentence(session.status())});
  }
  return table.text(columns);
}

}  // namespace collect::ctl
