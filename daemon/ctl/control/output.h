// How the online commands print: a table for people, the message as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/online.h"

namespace collect::ctl {

std::string session_table(const std::vector<control::v1::Session>& sessions, size_t columns = 0);

template <class Message, class Human>
int print(const Online& online, const Message& message, Human&& human) {
  if (online.json) {
    online.out << message_line(message);
  } else {
    online.out << human();
  }
  online.out.flush();
  return kExitOk;
}

// What each agent answered: a line each, and no success where one could not. `cells` are those
// between the names and the result.
template <class Response, class Cells>
int print_outcomes(const Online& online, const Result<Response>& response,
                   const std::vector<std::string>& columns, const Cells& cells) {
  if (!response.ok()) return failed(online, response.error());
  int code = response->outcomes().empty() ? kExitFailed : kExitOk;
  for (const auto& outcome : response->outcomes()) {
    if (outcome.has_error()) code = kExitFailed;
  }
  print(online, *response, [&] {
    Table table(columns);
    for (const auto& outcome : response->outcomes()) {
      std::vector<std::string> row = cells(outcome);
      row.insert(row.begin(), short_name(outcome.agent()));
      row.push_back(outcome.has_error() ? printable_sentence(outcome.error().message()) : "ok");
      table.add(std::move(row));
    }
    return table.text(online.columns);
  });
  return code;
}

}  // namespace collect::ctl
