#include "daemon/ctl/online/output.h"

namespace collect::ctl {

namespace api = control::v1;

Columns agent_columns() {
  return {{"AGENT", "STATE", "PROCESS", "PID", "DEVICE", "DETAIL", "SESSION", "STATUS"}, {3}};
}

std::vector<std::string> agent_row(const api::Agent& agent) {
  const std::string& device =
      agent.device_model().empty() ? agent.device_id() : agent.device_model();
  std::string status = printable_sentence(agent.status());
  if (agent.state() == api::AGENT_STATE_DIALING && !status.empty()) {
    status = printable(agent.address()) + ": " + status;
  } else if (status.empty()) {
    status = printable_sentence(agent.address());
  }
  return {short_name(agent.name()),
          state_word(agent.state()),
          printable(agent.process_name()),
          agent.pid() == 0 ? "" : std::to_string(agent.pid()),
          printable(device),
          mode_word(agent.detail()),
          short_name(agent.session()),
          status};
}

Columns session_columns() {
  return {{"SESSION", "STATE", "PROCESS", "THREADS", "EVENTS", "LOST", "DETAIL", "TIME", "STORED",
           "STATUS"},
          {3, 4, 5, 6, 7, 8}};
}

std::vector<std::string> session_row(const api::Session& session) {
  return {short_name(session.name()),
          state_word(session.state()),
          printable(session.process_name()),
          std::to_string(session.threads()),
          with_thousands(session.events()),
          loss_count(session),
          with_thousands(session.detail_records()),
          short_duration(session_seconds(session)),
          short_bytes(session.stored_bytes() + session.container_bytes()),
          printable_sentence(session.status())};
}

std::string session_table(const std::vector<api::Session>& sessions, size_t columns) {
  Table table(session_columns().names);
  for (const size_t column : session_columns().right) table.right(column);
  for (const api::Session& session : sessions) table.add(session_row(session));
  return table.text(columns);
}

}  // namespace collect::ctl
