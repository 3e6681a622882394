#include "daemon/collector.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cstdlib>
#include <fstream>

#include "daemon/collector_call.h"
#include "daemon/config.h"
#include "daemon/control/selector.h"
#include "daemon/symbolize/limits.h"
#include "storage/manifest.h"

namespace collect::daemon {
namespace {

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total{};
  uint64_t resident{};
  file >> total >> resident;  // without the file they stay 0
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Collector::Collector(const ingest::IngestOptions& options, storage::Fs& fs,
                     symbolize::SymbolizerOptions symbols)
    : root_(options.storage.root),
      fs_(fs),
      naming_(fs, std::move(symbols),
              [this](const std::string& name, storage::SymbolsState state,
                     const std::string& said) { on_named(name, state, said); }),
      converter_(fs, options.storage) {}

Collector::~Collector() {
  if (attach_) attach_->stop();
  stopping_ = true;
  converter_.stop();
  // What they find goes to agents, so they end first.
  lookups_.join();
  start_filters_.join();
  watches_.stop();  // so do its timers
  // Its threads go through the pointer until they have ended, and reset() would clear it before.
  ingest_.get_deleter()(ingest_.get());
  (void)ingest_.release();
  files_.join();
}

Result<std::unique_ptr<Collector>> Collector::create(ingest::IngestOptions options, storage::Fs& fs,
                                                     const attach::AttachOptions& devices,
                                                     symbolize::SymbolizerOptions symbols) {
  std::unique_ptr<Collector> collector(new Collector(options, fs, std::move(symbols)));
  if (Status loaded = collector->rules_.load(); !loaded.ok()) return loaded.error();
  auto attach = attach::Attach::create(
      devices, [](const char* name) -> const char* { return std::getenv(name); }, *collector);
  if (!attach.ok()) return attach.error();
  collector->attach_ = std::move(attach).value();
  auto ingest = ingest::Ingest::bind(std::move(options), fs, *collector);
  if (!ingest.ok()) return ingest.error();
  collector->ingest_ = std::move(ingest).value();
  return collector;
}

void Collector::run() {
  ingest_->run();
  converter_.start(ingest_->budget());
  attach_->run();
}

bool Collector::stop(std::chrono::milliseconds bound) {
  attach_->stop();
  stopping_ = true;
  converter_.stop();
  const bool in_time = ingest_->stop(bound);
  naming_.stop(symbolize::kNamingStopBound);
  return in_time;
}

// ---- what ingest reports

void Collector::agent_changed(const ingest::AgentSnapshot& agent) {
  const auto change = registry_.put(agent);
  const api::Agent message = to_message(agent);
  watches_.agent_event(change == CollectorRegistry::Change::kAdded ? api::CHANGE_KIND_ADDED
                                                                   : api::CHANGE_KIND_CHANGED,
                       message);
  tell_devices(agent);
  if (change == CollectorRegistry::Change::kAdded && is_up(agent)) apply_rules(agent);
  if (!agent.dialled || !is_up(agent)) return;
  std::vector<uint64_t> waiting;
  {
    std::lock_guard lock(attach_mutex_);
    for (const PendingAttach& attach : attaching_) {
      if (attach.address == agent.address) waiting.push_back(attach.id);
    }
  }
  for (const uint64_t id : waiting) answer_attach(id, message);
}

void Collector::agent_removed(ingest::AgentId id) {
  const auto agent = registry_.remove_agent(id);
  if (agent.ok()) watches_.agent_event(api::CHANGE_KIND_REMOVED, to_message(*agent));
}

void Collector::session_changed(const ingest::SessionSnapshot& session) {
  registry_.put(session);
  if (is_over(session.state)) triggers_.forget(session.name);
  const auto known = registry_.session(session.name);  // with what is known of its names
  watches_.session_event(session.name, to_message(known.ok() ? *known : session),
                         is_over(session.state));
}

bool Collector::to_be_named(const std::string& name, const std::string& directory,
                            std::vector<uint64_t> functions) {
  return naming_.add({name, directory, std::move(functions)});
}

void Collector::on_named(const std::string& name, storage::SymbolsState state,
                         const std::string& said) {
  if (!said.empty()) spdlog::warn("{}: {}", name, said);
  registry_.set_symbols(name, state);  // it is sealed: whoever watched it has had the last word
}

// ---- looking

std::vector<api::Agent> Collector::agents(const api::Selector& target) {
  std::vector<api::Agent> all;
  for (const ingest::AgentSnapshot& agent : registry_.agents()) {
    api::Agent message = to_message(agent);
    if (control::matches(message, target)) all.push_back(std::move(message));
  }
  return all;
}

std::vector<api::Session> Collector::sessions(const api::Selector& target) {
  std::vector<api::Session> all;
  for (const ingest::SessionSnapshot& session : registry_.sessions()) {
    api::Session message = to_message(session);
    if (control::matches(message, target)) all.push_back(std::move(message));
  }
  return all;
}

Result<api::Session> Collector::session(const std::string& name) {
  const auto found = registry_.session(name);
  if (!found.ok()) return found.error();
  return to_message(*found);
}

Result<api::Agent> Collector::agent(const std::string& name) {
  const auto found = registry_.agent(name);
  if (!found.ok()) return found.error();
  return to_message(*found);
}

api::Stats Collector::stats() {
  const ingest::IngestCounters& counters = ingest_->counters();
  api::Stats stats;
  stats.set_version(kVersion);
  *stats.mutable_start_time() = timestamp(started_at_);
  stats.set_root(root_);
  stats.set_ingest_address(ingest_->address());
  for (const ingest::AgentSnapshot& agent : registry_.agents()) {
    if (is_up(agent)) stats.set_agents_connected(stats.agents_connected() + 1);
  }
  for (const ingest::SessionSnapshot& session : registry_.sessions()) {
    if (!is_over(session.state)) stats.set_sessions_active(stats.sessions_active() + 1);
  }
  stats.set_connections_accepted(counters.connections_accepted);
  stats.set_connections_refused(counters.connections_refused);
  stats.set_bytes_received(counters.bytes_received);
  stats.set_bytes_stored(counters.bytes_stored);
  stats.set_pages_stored(counters.pages_stored);
  stats.set_pages_decoded(counters.pages_decoded);
  stats.set_pages_bad_checksum(counters.pages_bad_checksum);
  stats.set_events_stored(counters.events_stored);
  stats.set_events_lost(counters.events_lost);
  stats.set_detail_records_stored(counters.detail_records_stored);
  const auto space = fs_.space(root_);
  if (space.ok()) stats.set_disk_free_bytes(space->free_bytes);
  stats.set_resident_bytes(resident_bytes());
  return stats;
}

void Collector::manifest(const std::string& name, control::Callback<api::Manifest> done) {
  const auto session = registry_.session(name);
  if (!session.ok()) {
    done(session.error());
    return;
  }
  asio::post(files_, [this, shown = *session, done = std::move(done)] {
    auto json = storage::read_manifest_json(fs_, shown.directory);
    if (json.ok()) {
      done(manifest_message(shown.name, std::move(json).value()));
    } else {
      done(json.error());
    }
  });
}

// ---- watching

control::WatchId Collector::watch_agents(std::function<void(const api::AgentEvent&)> on_event) {
  return watches_.watch_agents(std::move(on_event));
}

Result<control::WatchId> Collector::watch_session(
    const std::string& name, uint32_t interval_ms,
    std::function<void(const api::Session&, bool last)> on_session) {
  const auto session = registry_.session(name);
  if (!session.ok()) return session.error();
  const control::WatchId id = watches_.watch_session(
      session->name, std::chrono::milliseconds(interval_ms), std::move(on_session));
  // Looked at again behind the subscription, or an end between the two would never be told.
  const auto now = registry_.session(session->name);
  if (now.ok()) watches_.session_event(now->name, to_message(*now), is_over(now->state));
  return id;
}

void Collector::unwatch(control::WatchId id) {
  watches_.unwatch(id);
}

// ---- functions by name

void Collector::find_functions(const ingest::AgentSnapshot& agent, FindFunctions find,
                               ingest::Answer<std::vector<uint64_t>> done) {
  ingest_->modules(agent.process_id, [this, find = std::move(find), done = std::move(done)](
                                         Result<std::vector<storage::ModuleInfo>> modules) {
    if (!modules.ok()) {
      done(modules.error());
      return;
    }
    // Symbol files are read: not on a thread that others wait for.
    asio::post(lookups_, [find, done, known = std::move(modules).value()] { done(find(known)); });
  });
}

}  // namespace collect::daemon
