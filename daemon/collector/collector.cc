#include "daemon/collector/collector.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "daemon/collector/agents/agent_attach.h"
#include "daemon/collector/agents/device_bridge.h"
#include "daemon/collector/agents/messages.h"
#include "daemon/collector/agents/process_attach.h"
#include "daemon/collector/call_watches.h"
#include "daemon/collector/detail/detail_control.h"
#include "daemon/collector/detail/filter_control.h"
#include "daemon/collector/detail/function_search.h"
#include "daemon/collector/detail/marker_control.h"
#include "daemon/collector/detail/recording_control.h"
#include "daemon/collector/detail/rule_book.h"
#include "daemon/collector/detail/rule_control.h"
#include "daemon/collector/detail/trigger_control.h"
#include "daemon/collector/sessions/sealed_work.h"
#include "daemon/collector/sessions/session_converter.h"
#include "daemon/collector/sessions/session_files.h"
#include "daemon/collector/sessions/store_uploads.h"
#include "daemon/control/service/selector.h"
#include "daemon/symbolize/child_program.h"
#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/naming_queue.h"
#include "formats/calls/lod/lod_layout.h"
#include "formats/core/task_threads.h"
#include "formats/core/version.h"

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

// ---- its parts

struct Collector::Services {
  Services(Collector& collector, const ingest::IngestOptions& options, storage::Fs& fs,
           const symbolize::SymbolizerOptions& symbols, const upload::StoreRequest& store)
      : uploads(store, [&collector](const std::string& name) { collector.remove(name); }),
        rules(fs, options.storage.root),
        call_watches(symbolize::own_program("collect-calls"),
                     options.storage.symbolize ? symbols : symbolize::SymbolizerOptions()),
        sealed_work(symbolize::own_program("collect-page"), fs,
                    {0, options.storage.keep_free_bytes, options.storage.keep_free_files}, in_use,
                    [](const std::string& name, const std::string& said) {
                      spdlog::warn("{}: no index.lod, so that views take longer: {}", name, said);
                    }),
        naming(fs, symbols,
               [&collector](const std::string& name, storage::SymbolsState state,
                            const std::string& said) {
                 if (!said.empty()) spdlog::warn("{}: {}", name, said);
                 // It is sealed: its watches have had their last message.
                 collector.registry_.set_symbols(name, state);
                 collector.pack_when_ready(name);
               }),
        converter(fs, options.storage) {}

  StoreUploads uploads;
  RuleBook rules;
  CallWatches call_watches;
  TaskThreads files{"files", 1};
  SessionUse in_use;
  SealedWork sealed_work;
  symbolize::NamingQueue naming;
  SessionConverter converter;
  std::unique_ptr<DeviceBridge> devices;
};

struct Collector::Controls {
  Controls(Collector& collector, Services& services, const ProcessAttach::Options& to_processes)
      : functions(*collector.ingest_, services.naming.symbolizer()),
        detail(collector.registry_, *collector.ingest_, functions, collector.methods_),
        filter(collector.registry_, *collector.ingest_, functions, collector.methods_),
        triggers(collector.registry_, *collector.ingest_, functions, detail,
                 collector.watches_.io(), collector.methods_),
        recordings(collector.registry_, *collector.ingest_, detail, filter, collector.watches_.io(),
                   collector.methods_),
        rules(services.rules, *collector.ingest_, recordings, services.files, collector.methods_),
        markers(collector.registry_, *collector.ingest_, collector.methods_),
        attach(collector.registry_, *collector.ingest_, services.devices->attach(),
               collector.watches_.io(), collector.methods_),
        processes(collector.registry_, to_processes, collector.methods_),
        files({collector.root_, collector.fs_, collector.registry_, *collector.ingest_,
               services.converter, services.naming, services.sealed_work, services.in_use,
               services.files,
               [&collector](const ingest::SessionSnapshot& made) {
                 collector.session_changed(made);
               }},
              collector.methods_) {}

  FunctionSearch functions;
  DetailControl detail;
  FilterControl filter;
  TriggerControl triggers;
  RecordingControl recordings;
  RuleControl rules;
  MarkerControl markers;
  AgentAttach attach;
  ProcessAttach processes;
  SessionFiles files;
};

Collector::Collector(const CollectorOptions& options, storage::Fs& fs)
    : root_(options.ingest.storage.root),
      pack_(options.pack),
      fs_(fs),
      services_(
          std::make_unique<Services>(*this, options.ingest, fs, options.symbols, options.store)) {}

Collector::~Collector() {
  if (services_->devices) services_->devices->stop();
  services_->converter.stop();
  services_->sealed_work.stop();
  services_->uploads.stop();
  if (controls_) {
    // What they find goes to agents, so they end first.
    controls_->processes.stop();
    controls_->functions.stop();
    controls_->functions.join();
    controls_->filter.join();
  }
  watches_.stop();  // so do its timers
  services_->call_watches.stop();
  if (ingest_) ingest_->stop(ingest::milliseconds{0});
  services_->files.join();
}

Result<std::unique_ptr<Collector>> Collector::create(CollectorOptions options, storage::Fs& fs) {
  const bool asks_for_tls = options.ingest.tls != nullptr;
  options.symbols.known_files = std::make_shared<symbolize::KnownFiles>();
  options.store.want = upload::StoreWant::kFollow;
  options.store.output = options.ingest.storage.root;
  options.store.packed = options.pack;
  std::unique_ptr<Collector> collector(new Collector(options, fs));
  Services& services = *collector->services_;
  for (const Status& started :
       {collector->watches_.started(), services.naming.started(), services.sealed_work.started()}) {
    if (!started.ok()) return started.error();
  }
  if (Status loaded = services.rules.load(); !loaded.ok()) return loaded.error();
  auto bridge = DeviceBridge::create(options.devices, collector->watches_);
  if (!bridge.ok()) return bridge.error();
  services.devices = std::move(bridge).value();
  auto ingest = ingest::Ingest::bind(std::move(options.ingest), fs, *collector);
  if (!ingest.ok()) return ingest.error();
  collector->ingest_ = std::move(ingest).value();
  const ProcessAttach::Options processes{collector->ingest_->address(), asks_for_tls,
                                         options.token_file};
  collector->controls_ = std::make_unique<Controls>(*collector, services, processes);
  return collector;
}

Status Collector::run() {
  COLLECT_TRY(ingest_->run());
  COLLECT_TRY(services_->converter.start(ingest_->budget()));
  COLLECT_TRY(services_->devices->run(*ingest_));
  return services_->uploads.start();
}

bool Collector::stop(std::chrono::milliseconds bound) {
  services_->devices->stop();
  controls_->processes.stop();
  controls_->functions.stop();
  services_->converter.stop();
  const bool in_time = ingest_->stop(bound);
  services_->uploads.stop();
  services_->naming.stop(symbolize::kNamingStopBound);
  services_->sealed_work.stop();
  return in_time;
}

void Collector::remove(const std::string& name) {
  controls_->files.remove(name, [name](const Result<api::DeleteSessionResponse>& removed) {
    if (removed.ok()) {
      spdlog::info("{}: it is in the store, and was removed here", name);
    } else {
      spdlog::info("{}: it is in the store; {}", name, removed.error().message);
    }
  });
}

// ---- what ingest reports

void Collector::agent_changed(const ingest::AgentSnapshot& agent) {
  const bool is_new = registry_.put(agent) == Registry::Change::kAdded;
  watches_.agent_event(is_new ? api::CHANGE_KIND_ADDED : api::CHANGE_KIND_CHANGED,
                       to_message(agent));
  services_->devices->agent_changed(agent);
  if (is_new && is_up(agent)) controls_->rules.apply(agent);
  if (agent.dialled && is_up(agent)) controls_->attach.agent_is_up(agent);
}

void Collector::agent_removed(ingest::AgentId id) {
  const auto agent = registry_.remove_agent(id);
  if (agent.ok()) watches_.agent_event(api::CHANGE_KIND_REMOVED, to_message(*agent));
}

void Collector::session_changed(const ingest::SessionSnapshot& session) {
  registry_.put(session);
  if (is_over(session.state)) {
    controls_->triggers.forget(session.name);
    const auto session_path = storage::parse_session_path(root_, session.name);
    if (session_path && session.totals.events >= calls::kLeastLodEvents) {
      services_->sealed_work.add_lods(*session_path);
    }
    pack_when_ready(session.name);
  }
  const auto known = registry_.session(session.name);  // with what is known of its names
  watches_.session_event(session.name, to_message(known.ok() ? *known : session),
                         is_over(session.state));
}

// Those that agents recorded: what was made of another session is wanted as it is.
void Collector::pack_when_ready(const std::string& name) {
  if (!pack_) return;
  const auto session = registry_.session(name);
  const auto session_path = storage::parse_session_path(root_, name);
  if (!session.ok() || !session_path || session->packed || !is_over(session->state)) return;
  const auto parsed = storage::parse_session_name(session_path->session);
  const bool is_empty = session->totals.events + session->totals.detail_records == 0;
  if (session->symbols == storage::SymbolsState::kPending || is_empty || !parsed ||
      !parsed->is_recorded()) {
    return;
  }
  services_->sealed_work.add_packing(
      *session_path, storage::PackWay::kPack,
      [this, name](const Result<storage::PackReport>& packed) {
        if (packed.ok()) {
          registry_.set_packed(name, true, packed->packed_bytes);
        } else if (packed.code() != Code::kCancelled && packed.code() != Code::kUnavailable) {
          spdlog::warn("{} is not packed: {}", name, packed.error().message);
        }
      });
}

void Collector::filter_wanted(const ingest::AgentSnapshot& agent, ingest::FilterRequest wanted) {
  controls_->filter.start_with(agent, std::move(wanted));
}

void Collector::modules_loaded(const std::vector<storage::ModuleInfo>& modules) {
  services_->naming.symbolizer().options().known_files->add(modules);
}

bool Collector::to_be_named(const std::string& name, const std::string& directory,
                            std::vector<uint64_t> functions) {
  return services_->naming.add({name, directory, std::move(functions)});
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
  if (const StoreUploads& uploads = services_->uploads; uploads.has_store()) {
    *stats.mutable_store() = to_message(uploads.url(), uploads.status());
  }
  return stats;
}

// ---- watching

control::WatchId Collector::watch_agents(std::function<void(const api::AgentEvent&)> on_event) {
  return watches_.watch_agents(std::move(on_event));
}

control::WatchId Collector::watch_devices(std::function<void(const api::DeviceEvent&)> on_event) {
  return watches_.watch_devices(std::move(on_event));
}

Result<control::WatchId> Collector::watch_session(
    const std::string& name, uint32_t interval_ms,
    std::function<void(const api::Session&, bool last)> on_session) {
  const auto session = registry_.session(name);
  if (!session.ok()) return session.error();
  const control::WatchId id = watches_.watch_session(
      session->name, std::chrono::milliseconds(interval_ms), std::move(on_session));
  // Checked again after the subscription, or an end between the two would never be reported.
  const auto now = registry_.session(session->name);
  if (now.ok()) watches_.session_event(now->name, to_message(*now), is_over(now->state));
  return id;
}

void Collector::unwatch(control::WatchId id) {
  watches_.unwatch(id);
}

Result<control::WatchId> Collector::watch_calls(const api::WatchCallsRequest& request,
                                                control::CallWatcher watcher) {
  const SessionFiles& files = controls_->files;
  const auto session = files.recording_session(request.name(), "report and dump show it");
  if (!session.ok()) return session.error();
  const auto directory = files.directory_of(*session);
  if (!directory.ok()) return directory.error();
  return services_->call_watches.watch(*directory, to_message(*session).name(), request,
                                       std::move(watcher));
}

void Collector::unwatch_calls(control::WatchId id) {
  services_->call_watches.unwatch(id);
}

// ---- devices and files

std::vector<api::Device> Collector::devices(const std::string& match) {
  return services_->devices->devices(match);
}

Result<api::Device> Collector::device(const std::string& name) {
  return services_->devices->device(name);
}

std::vector<api::DeviceServer> Collector::device_servers() {
  return services_->devices->servers();
}

void Collector::open_file(const std::string& name, const std::string& path,
                          control::Callback<std::shared_ptr<control::FileReader>> done) {
  controls_->files.open(name, path, std::move(done));
}

void Collector::convert_session(const std::string& name, uint32_t atf_version,
                                control::ConversionProgress progress,
                                control::Callback<api::ConversionEnd> done) {
  controls_->files.convert(name, atf_version, std::move(progress), std::move(done));
}

}  // namespace collect::daemon
