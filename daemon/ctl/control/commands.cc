#include "daemon/ctl/control/commands.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

std::string agent_table(std::vector<api::Agent> agents, size_t columns) {
  Table table({"AGENT", "STATE", "PROCESS", "PID", "DEVICE", "DETAIL", "SESSION", "STATUS"});
  table.right(3);
  // Who is here comes first, in the order in which they came.
  std::stable_partition(agents.begin(), agents.end(), [](const api::Agent& agent) {
    return agent.state() != api::AGENT_STATE_GONE;
  });
  for (const api::Agent& agent : agents) {
    const std::string& device =
        agent.device_model().empty() ? agent.device_id() : agent.device_model();
    std::string status = printable_sentence(agent.status());
    if (agent.state() == api::AGENT_STATE_DIALING && !status.empty()) {
      status = fmt::format("{}: {}", printable(agent.address()), status);
    } else if (status.empty()) {
      status = printable_sentence(agent.address());
    }
    table.add({short_name(agent.name()), state_word(agent.state()), printable(agent.process_name()),
               agent.pid() == 0 ? "" : std::to_string(agent.pid()), printable(device),
               mode_word(agent.detail()), short_name(agent.session()), status});
  }
  return table.text(columns);
}

std::string watch_line(const api::Session& session) {
  const double seconds = session_seconds(session);
  std::string line =
      fmt::format("{}  {}  {}  {} events", short_name(session.name()), state_word(session.state()),
                  short_duration(seconds), with_thousands(session.events()));
  if (seconds > 0)
    line += fmt::format(" ({})", short_rate(static_cast<double>(session.events()) / seconds));
  line += fmt::format("  {}{}{} detail ({})  {}", session.threads(),
                      session.threads() == 1 ? " thread  " : " threads  ",
                      with_thousands(session.detail_records()), mode_word(session.detail()),
                      short_bytes(session.stored_bytes() + session.container_bytes()));
  line += "  lost " + loss_count(session);
  if (!session.status().empty()) line += "  " + printable_sentence(session.status());
  return line;
}

int watch_session(const Online& online, const WatchOptions& options) {
  Client client(online.control);
  api::Session last;
  const Status status = client.watch_session(
      options.session, std::chrono::duration_cast<std::chrono::milliseconds>(options.interval),
      [&](const api::Session& session) {
        last = session;
        if (online.json) {
          online.out << message_line(session);
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
  if (!status.ok()) return failed(online, status.error());
  if (!online.json && is_sealed(last)) online.out << "files: " << printable(last.path()) << "\n";
  online.out.flush();
  return last.state() == api::SESSION_STATE_FAILED ? kExitFailed : kExitOk;
}

int watch_agents(const Online& online, const WatchOptions& options) {
  Client client(online.control);
  const Status status = client.watch_agents(options.filter, [&](const api::AgentEvent& event) {
    if (online.json) {
      online.out << message_line(event);
    } else if (event.has_agent()) {
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
  return status.ok() ? kExitOk : failed(online, status.error());
}

std::string manifest_text(const api::Manifest& manifest) {
  std::string text =
      fmt::format("{}  {}  format {}.{}  {} symbols\n\n", short_name(manifest.session()),
                  printable(manifest.state()), manifest.format_version_major(),
                  manifest.format_version_minor(), with_thousands(manifest.symbol_count()));
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
    text += fmt::format("gap: thread {} {}: {} lost before record {}: {}\n", gap.thread(),
                        printable(gap.lane()), with_thousands(gap.lost()), gap.before_seq(),
                        printable_sentence(gap.reason()));
  }
  for (const api::ManifestStall& stall : manifest.stalls()) {
    text += fmt::format(
        "stall: {} {}: {} from {} to {} ns",
        stall.has_thread() ? fmt::format("thread {}", stall.thread()) : "every thread",
        printable(stall.kind()), short_duration(static_cast<double>(stall.stalled_ns()) / 1e9),
        stall.first_ns(), stall.last_ns());
    if (stall.count() > 1) text += fmt::format(", {} stalls joined", with_thousands(stall.count()));
    text += "\n";
  }
  for (const api::ManifestDetailWindow& window : manifest.detail_windows()) {
    text += fmt::format("detail {}: {} to {} ns\n", printable(window.mode()), window.start_ns(),
                        window.end_ns() == 0 ? "now" : std::to_string(window.end_ns()));
  }
  return text;
}

}  // namespace

int failed(std::ostream& err, const Error& error, bool json) {
  if (json) {
    err << error_line(error);
  } else {
    err << "collectctl: " << printable_sentence(error.message) << "\n";
  }
  err.flush();
  return kExitFailed;
}

int failed(const Online& online, const Error& error) {
  return failed(online.json ? online.out : online.err, error, online.json);
}

int list_agents(const Online& online, const std::string& filter) {
  Result<std::vector<api::Agent>> agents = Client(online.control).agents(filter);
  if (!agents.ok()) return failed(online, agents.error());
  api::ListAgentsResponse response;
  for (const api::Agent& agent : *agents) *response.add_agents() = agent;
  return print(online, response, [&]() -> std::string {
    if (!agents->empty()) return agent_table(*agents, online.columns);
    return filter.empty() ? "no agents; start one with: collectctl run -- ./program\n"
                          : "no agent matches\n";
  });
}

int list_threads(const Online& online, const std::string& agent) {
  const Result<api::ListThreadsResponse> response = Client(online.control).threads(agent);
  if (!response.ok()) return failed(online, response.error());
  return print(online, *response, [&]() -> std::string {
    if (response->threads().empty())
      return short_name(response->agent()) + " records no thread now\n";
    Table table({"THREAD", "NAME"});
    table.right(0);
    for (const api::AgentThread& thread : response->threads()) {
      table.add({std::to_string(thread.thread_id()), printable(thread.name())});
    }
    return table.text(online.columns);
  });
}

int attach_agent(const Online& online, const std::string& address) {
  const Result<api::Agent> agent = Client(online.control).attach(address);
  if (!agent.ok()) return failed(online, agent.error());
  return print(online, *agent, [&] { return agent_table({*agent}, online.columns); });
}

int detach_agent(const Online& online, const std::string& name,
                 const std::function<int()>& otherwise) {
  const Result<api::Agent> agent = Client(online.control).detach(name);
  const bool is_known =
      agent.ok() || (agent.code() != Code::kNotFound && agent.code() != Code::kUnavailable);
  if (!is_known && otherwise) return otherwise();
  if (!agent.ok()) return failed(online, agent.error());
  return print(online, *agent, [&] { return agent_table({*agent}, online.columns); });
}

int list_sessions(const Online& online, const std::string& filter) {
  Result<std::vector<api::Session>> sessions = Client(online.control).sessions(filter);
  if (!sessions.ok()) {
    Error error = sessions.error();
    if (error.code == Code::kUnavailable) {
      error.message += "; without one, collectctl sessions DIR lists those below a directory";
    }
    return failed(online, error);
  }
  api::ListSessionsResponse response;
  for (const api::Session& session : *sessions) *response.add_sessions() = session;
  return print(online, response, [&]() -> std::string {
    if (!sessions->empty()) return session_table(*sessions, online.columns);
    return filter.empty() ? "no sessions yet\n" : "no session matches\n";
  });
}

int show_manifest(const Online& online, const std::string& session) {
  Client client(online.control);
  if (online.json) {
    std::string json;
    const auto end = client.download(session, "manifest.json", 0, [&json](const std::string& part) {
      json += part;
      return Status();
    });
    if (!end.ok()) return failed(online, end.error());
    online.out << printable_json(json);
  } else {
    const Result<api::Manifest> manifest = client.manifest(session);
    if (!manifest.ok()) return failed(online, manifest.error());
    online.out << manifest_text(*manifest);
  }
  online.out.flush();
  return kExitOk;
}

int watch(const Online& online, const WatchOptions& options) {
  return options.agents ? watch_agents(online, options) : watch_session(online, options);
}

namespace {

void add_store(Table& table, const api::StoreStats& store) {
  table.add({"store", store.url()});
  table.add({"sessions to upload", fmt::format("{}, {}", with_thousands(store.sessions_pending()),
                                               short_bytes(store.bytes_pending()))});
  table.add({"sessions uploaded",
             fmt::format("{}, {} as {}", with_thousands(store.sessions_committed()),
                         short_bytes(store.bytes_committed()), short_bytes(store.bytes_sent()))});
  table.add({"removed after that", fmt::format("{}, {}", with_thousands(store.sessions_removed()),
                                               short_bytes(store.bytes_removed()))});
  if (store.sessions_refused() != 0) {
    table.add({"refused by the store", with_thousands(store.sessions_refused())});
  }
  if (!store.problem().empty()) table.add({"problem", store.problem()});
}

}  // namespace

int show_stats(const Online& online) {
  const Result<api::Stats> stats = Client(online.control).stats();
  if (!stats.ok()) return failed(online, stats.error());
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
    table.add({"pages arrived encoded", with_thousands(stats->pages_decoded())});
    table.add({"pages with a bad checksum", with_thousands(stats->pages_bad_checksum())});
    table.add({"events", with_thousands(stats->events_stored())});
    table.add({"events lost", with_thousands(stats->events_lost())});
    table.add({"detail records", with_thousands(stats->detail_records_stored())});
    table.add({"disk free", short_bytes(stats->disk_free_bytes())});
    table.add({"memory", short_bytes(stats->resident_bytes())});
    if (stats->has_store()) add_store(table, stats->store());
    return table.text(online.columns);
  });
}

}  // namespace collect::ctl
