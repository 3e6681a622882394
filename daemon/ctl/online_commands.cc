#include "daemon/ctl/online_commands.h"

#include <utility>

#include "daemon/ctl/client.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/terminal.h"
#include "daemon/ctl/text.h"

namespace collect::ctl {
namespace {

std::string agent_table(std::vector<api::Agent> agents) {
  Table table({"AGENT", "STATE", "PROCESS", "PID", "DEVICE", "DETAIL", "SESSION", "STATUS"});
  table.right(3);
  // Who is here comes first, in the order in which they came.
  std::stable_partition(agents.begin(), agents.end(),
                        [](const api::Agent& agent) { return agent.state() != api::GONE; });
  for (const api::Agent& agent : agents) {
    const std::string& device =
        agent.device_model().empty() ? agent.device_id() : agent.device_model();
    std::string status = printable_sentence(agent.status());
    if (agent.state() == api::DIALING && !status.empty()) {
      status = printable(agent.address()) + ": " + status;
    } else if (status.empty()) {
      status = printable_sentence(agent.address());
    }
    table.add({short_name(agent.name()), std::string(state_word(agent.state())),
               printable(agent.process_name()), agent.pid() == 0 ? "" : std::to_string(agent.pid()),
               printable(device), std::string(mode_word(agent.detail())),
               short_name(agent.session()), status});
  }
  return table.text();
}

std::string session_table(const std::vector<api::Session>& sessions) {
  Table table({"SESSION", "STATE", "PROCESS", "THREADS", "EVENTS", "LOST", "DETAIL", "TIME",
               "STORED", "STATUS"});
  for (size_t column : {3, 4, 5, 6, 7, 8}) table.right(column);
  for (const api::Session& session : sessions) {
    table.add({short_name(session.name()), std::string(state_word(session.state())),
               printable(session.process_name()), std::to_string(session.threads()),
               with_thousands(session.events()), loss_count(session),
               with_thousands(session.detail_records()), short_duration(session_seconds(session)),
               short_bytes(session.stored_bytes() + session.container_bytes()),
               printable_sentence(session.status())});
  }
  return table.text();
}

template <class Message, class Human>
int print(const Online& online, const Message& message, Human&& human) {
  if (online.json) {
    online.out << to_json(message) << "\n";
  } else {
    online.out << human();
  }
  online.out.flush();
  return kExitOk;
}

template <class Response>
int print_sessions(const Online& online, const Result<Response>& response, const char* none) {
  if (!response.ok()) return failed(online.err, response.error());
  return print(online, *response, [&]() -> std::string {
    const std::vector<api::Session> sessions(response->sessions().begin(),
                                             response->sessions().end());
    return sessions.empty() ? none : session_table(sessions);
  });
}

std::string watch_line(const api::Session& session) {
  const double seconds = session_seconds(session);
  std::string line = short_name(session.name()) + "  " + std::string(state_word(session.state())) +
                     "  " + short_duration(seconds) + "  " + with_thousands(session.events()) +
                     " events";
  if (seconds > 0) line += " (" + short_rate(static_cast<double>(session.events()) / seconds) + ")";
  line += "  " + std::to_string(session.threads()) +
          (session.threads() == 1 ? " thread  " : " threads  ") +
          with_thousands(session.detail_records()) + " detail (" +
          std::string(mode_word(session.detail())) + ")  " +
          short_bytes(session.stored_bytes() + session.container_bytes());
  line += "  lost " + loss_count(session);
  if (!session.status().empty()) line += "  " + printable_sentence(session.status());
  return line;
}

int watch_session(const Online& online, const WatchOptions& options) {
  Client client(online.control);
  api::Session last;
  const Status status =
      client.watch_session(options.session, options.interval, [&](const api::Session& session) {
        last = session;
        if (online.json) {
          online.out << to_json(session) << "\n";
        } else if (online.terminal) {
          restart_line(online.out);
          online.out << watch_line(session);
        } else {
          online.out << watch_line(session) << "\n";
        }
        online.out.flush();
        return online.out.good();
      });
  if (online.terminal && !online.json && !last.name().empty()) online.out << "\n";
  if (!status.ok()) return failed(online.err, status.error());
  if (!online.json && is_sealed(last)) online.out << "files: " << printable(last.path()) << "\n";
  online.out.flush();
  return last.state() == api::FAILED ? kExitFailed : kExitOk;
}

int watch_agents(const Online& online, const WatchOptions& options) {
  Client client(online.control);
  const Status status = client.watch_agents(options.filter, [&](const api::AgentEvent& event) {
    if (online.json) {
      online.out << to_json(event) << "\n";
    } else {
      const api::Agent& agent = event.agent();
      online.out << event_word(event.kind()) << "  " << short_name(agent.name()) << "  "
                 << state_word(agent.state()) << "  " << printable(agent.process_name());
      if (agent.pid() != 0) online.out << " (" << agent.pid() << ")";
      if (!agent.session().empty()) online.out << "  " << short_name(agent.session());
      if (!agent.status().empty()) online.out << "  " << printable_sentence(agent.status());
      online.out << "\n";
    }
    online.out.flush();
    return online.out.good();
  });
  return status.ok() ? kExitOk : failed(online.err, status.error());
}

void set_duration(google::protobuf::Duration* field, std::chrono::nanoseconds value) {
  field->set_seconds(value.count() / 1'000'000'000);
  field->set_nanos(static_cast<int32_t>(value.count() % 1'000'000'000));
}

std::string manifest_text(const api::Manifest& manifest) {
  std::string text = short_name(manifest.session()) + "  " + printable(manifest.state()) +
                     "  format " + std::to_string(manifest.format_version_major()) + "." +
                     std::to_string(manifest.format_version_minor()) + "  " +
                     with_thousands(manifest.symbol_count()) + " symbols\n\n";
  Table threads({"THREAD", "TID", "EVENTS", "LOST", "DETAIL", "NAME"});
  for (size_t column : {0, 1, 2, 3, 4}) threads.right(column);
  for (const api::ManifestThread& thread : manifest.threads()) {
    threads.add({std::to_string(thread.id()), std::to_string(thread.thread_id()),
                 with_thousands(thread.events()),
                 with_thousands(thread.lost_events() + thread.lost_detail_records()),
                 with_thousands(thread.detail_records()), printable(thread.name())});
  }
  text += threads.text() + "\n";
  Table modules({"MODULE", "BUILD ID", "PATH"});
  modules.right(0);
  for (const api::ManifestModule& module : manifest.modules()) {
    modules.add({std::to_string(module.module_id()), printable(module.build_id()),
                 printable(module.path())});
  }
  text += modules.text();
  for (const api::ManifestGap& gap : manifest.gaps()) {
    text += "gap: thread " + std::to_string(gap.thread()) + " " + printable(gap.lane()) + ": " +
            with_thousands(gap.lost()) + " lost before record " + std::to_string(gap.before_seq()) +
            ": " + printable_sentence(gap.reason()) + "\n";
  }
  for (const api::ManifestStall& stall : manifest.stalls()) {
    text += "stall: " +
            (stall.has_thread() ? "thread " + std::to_string(stall.thread()) : "every thread") +
            " " + printable(stall.kind()) + ": " +
            short_duration(static_cast<double>(stall.stalled_ns()) / 1e9) + " from " +
            std::to_string(stall.first_ns()) + " to " + std::to_string(stall.last_ns()) + " ns";
    if (stall.count() > 1) text += ", " + with_thousands(stall.count()) + " stalls joined";
    text += "\n";
  }
  for (const api::ManifestDetailWindow& window : manifest.detail_windows()) {
    text += "detail " + printable(window.mode()) + ": " + std::to_string(window.start_ns()) +
            " to " + (window.end_ns() == 0 ? "now" : std::to_string(window.end_ns())) + " ns\n";
  }
  return text;
}

}  // namespace

int failed(std::ostream& err, const Error& error) {
  err << "collectctl: " << printable_sentence(error.message) << "\n";
  err.flush();
  return kExitFailed;
}

int list_agents(const Online& online, const std::string& filter) {
  Result<std::vector<api::Agent>> agents = Client(online.control).agents(filter);
  if (!agents.ok()) return failed(online.err, agents.error());
  api::ListAgentsResponse response;
  for (const api::Agent& agent : *agents) *response.add_agents() = agent;
  return print(online, response, [&]() -> std::string {
    if (!agents->empty()) return agent_table(*agents);
    return filter.empty() ? "no agents; start one with: collectctl run -- ./program\n"
                          : "no agent matches\n";
  });
}

int attach_agent(const Online& online, const std::string& address) {
  const Result<api::Agent> agent = Client(online.control).attach(address);
  if (!agent.ok()) return failed(online.err, agent.error());
  return print(online, *agent, [&] { return agent_table({*agent}); });
}

int detach_agent(const Online& online, const std::string& name) {
  const Result<api::Agent> agent = Client(online.control).detach(name);
  if (!agent.ok()) return failed(online.err, agent.error());
  return print(online, *agent, [&] { return agent_table({*agent}); });
}

int list_sessions(const Online& online, const std::string& filter) {
  Result<std::vector<api::Session>> sessions = Client(online.control).sessions(filter);
  if (!sessions.ok()) return failed(online.err, sessions.error());
  api::ListSessionsResponse response;
  for (const api::Session& session : *sessions) *response.add_sessions() = session;
  return print(online, response, [&]() -> std::string {
    if (!sessions->empty()) return session_table(*sessions);
    return filter.empty() ? "no sessions yet\n" : "no session matches\n";
  });
}

int start_session(const Online& online, const std::string& agent) {
  return print_sessions(online, Client(online.control).start_session(agent),
                        "no agent is attached and idle\n");
}

int stop_session(const Online& online, const std::string& name) {
  return print_sessions(online, Client(online.control).stop_session(name), "no session records\n");
}

int show_manifest(const Online& online, const std::string& session) {
  const Result<api::Manifest> manifest = Client(online.control).manifest(session);
  if (!manifest.ok()) return failed(online.err, manifest.error());
  online.out << (online.json ? printable_json(manifest->json()) : manifest_text(*manifest));
  online.out.flush();
  return kExitOk;
}

int set_detail(const Online& online, const DetailOptions& options) {
  api::DetailRequest request;
  request.set_target(options.target);
  for (const std::string& thread : options.threads) request.add_thread_patterns(thread);
  for (const std::string& function : options.functions) request.add_functions(function);
  if (options.duration.count() > 0) set_duration(request.mutable_duration(), options.duration);
  if (options.pre_roll.count() > 0) set_duration(request.mutable_pre_roll(), options.pre_roll);
  const Result<api::DetailResponse> response =
      Client(online.control).set_detail(options.mode, request);
  if (!response.ok()) return failed(online.err, response.error());
  int code = response->outcomes().empty() ? kExitFailed : kExitOk;
  for (const api::DetailOutcome& outcome : response->outcomes()) {
    if (!outcome.ok()) code = kExitFailed;
  }
  print(online, *response, [&] {
    Table table({"AGENT", "SESSION", "DETAIL", "PRE-ROLL", "FUNCTIONS", "RESULT"});
    table.right(3);
    table.right(4);
    for (const api::DetailOutcome& outcome : response->outcomes()) {
      table.add({short_name(outcome.agent()), short_name(outcome.session()),
                 std::string(mode_word(outcome.detail())),
                 with_thousands(outcome.pre_roll_records()),
                 options.functions.empty() ? "all" : std::to_string(outcome.functions_matched()),
                 outcome.ok() ? "ok" : printable_sentence(outcome.error())});
    }
    return table.empty() ? std::string() : table.text();
  });
  if (response->outcomes().empty()) {
    online.err << "collectctl: no agent is attached; see collectctl agents\n";
  }
  return code;
}

int set_function_filter(const Online& online, const FilterOptions& options) {
  if (!options.clear && options.only.empty() && options.except.empty()) {
    return failed(online.err, {Code::kInvalidArgument,
                               "say --only or --except, or --clear to record everything again"});
  }
  api::SetFunctionFilterRequest request;
  request.set_target(options.target);
  request.mutable_only()->Add(options.only.begin(), options.only.end());
  request.mutable_except()->Add(options.except.begin(), options.except.end());
  const auto response = Client(online.control).set_function_filter(request);
  if (!response.ok()) return failed(online.err, response.error());
  if (response->outcomes().empty()) {
    online.err << "collectctl: no agent is attached; see collectctl agents\n";
    return kExitFailed;
  }
  int code = kExitOk;
  for (const api::FunctionFilterOutcome& outcome : response->outcomes()) {
    if (!outcome.ok()) code = kExitFailed;
  }
  print(online, *response, [&] {
    Table table({"AGENT", "FUNCTIONS", "PATCHED", "RESULT"});
    table.right(1);
    table.right(2);
    for (const api::FunctionFilterOutcome& outcome : response->outcomes()) {
      table.add({short_name(outcome.agent()),
                 options.clear ? "all" : with_thousands(outcome.functions_matched()),
                 with_thousands(outcome.functions_patched()),
                 outcome.ok() ? "ok" : printable_sentence(outcome.error())});
    }
    return table.text();
  });
  return code;
}

namespace {

// What each session answered; not ok when one could not.
template <class Response, class Show>
int print_outcomes(const Online& online, const Result<Response>& response, const char* column,
                   Show show) {
  if (!response.ok()) return failed(online.err, response.error());
  int code = response->outcomes().empty() ? kExitFailed : kExitOk;
  for (const api::SessionOutcome& outcome : response->outcomes()) {
    if (!outcome.ok()) code = kExitFailed;
  }
  print(online, *response, [&] {
    Table table({"AGENT", "SESSION", column, "RESULT"});
    for (const api::SessionOutcome& outcome : response->outcomes()) {
      table.add({short_name(outcome.agent()), short_name(outcome.session()),
                 outcome.ok() ? show(outcome) : std::string("-"),
                 outcome.ok() ? "ok" : printable_sentence(outcome.error())});
    }
    return table.text();
  });
  return code;
}

}  // namespace

int annotate(const Online& online, const std::string& target, const std::string& text) {
  return print_outcomes(
      online, Client(online.control).annotate(target, text), "AT (ns)",
      [](const api::SessionOutcome& outcome) { return std::to_string(outcome.at_ns()); });
}

int roll_container(const Online& online, const std::string& target) {
  return print_outcomes(
      online, Client(online.control).roll_container(target), "NOW WRITES",
      [](const api::SessionOutcome& outcome) { return printable(outcome.container()); });
}

int watch(const Online& online, const WatchOptions& options) {
  return options.agents ? watch_agents(online, options) : watch_session(online, options);
}

int show_stats(const Online& online) {
  const Result<api::Stats> stats = Client(online.control).stats();
  if (!stats.ok()) return failed(online.err, stats.error());
  return print(online, *stats, [&] {
    Table table({"collectord " + printable(stats->version()), ""});
    table.add({"root", printable(stats->root())});
    table.add({"ingest", printable(stats->ingest_address())});
    table.add({"agents connected", with_thousands(stats->agents_connected())});
    table.add({"sessions recording", with_thousands(stats->sessions_active())});
    table.add({"connections accepted", with_thousands(stats->connections_accepted())});
    table.add({"connections refused", with_thousands(stats->connections_refused())});
    table.add({"received", short_bytes(stats->bytes_received())});
    table.add({"stored", short_bytes(stats->bytes_stored())});
    table.add({"pages", with_thousands(stats->pages_stored())});
    table.add({"pages that came encoded", with_thousands(stats->pages_decoded())});
    table.add({"pages with a bad checksum", with_thousands(stats->pages_bad_checksum())});
    table.add({"events", with_thousands(stats->events_stored())});
    table.add({"events lost", with_thousands(stats->events_lost())});
    table.add({"detail records", with_thousands(stats->detail_records_stored())});
    table.add({"disk free", short_bytes(stats->disk_free_bytes())});
    table.add({"memory", short_bytes(stats->resident_bytes())});
    return table.text();
  });
}

}  // namespace collect::ctl
