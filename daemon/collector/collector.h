// The collector as the control plane sees it: what ingest reports is kept and shown, what people
// ask for is turned into commands to agents. DAEMON.md has the picture.
//
// Threads: the CollectorApi may be called from any thread. Answers come on ingest's io threads or
// on the collector's own; reading files, finding functions, naming sessions and converting them
// have a thread each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/attach.h"
#include "daemon/collector/agents/registry.h"
#include "daemon/collector/agents/watches.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"
#include "daemon/symbolize/symbolizer.h"
#include "daemon/upload/store_request.h"

namespace collect::daemon {

struct CollectorOptions {
  ingest::IngestOptions ingest;
  attach::AttachOptions devices;
  symbolize::SymbolizerOptions symbols;
  std::string token_file;  // for agents that the collector loads into processes
  // Where sealed sessions go, how long they stay here, and which tables are beside them; want and
  // output are the collector's. Without a URL they go nowhere.
  upload::StoreRequest store;
  bool pack = false;  // sealed sessions
};

class Collector final : public control::CollectorApi, private ingest::IngestObserver {
 public:
  // Binds the ingest address; no one is served before run(). `fs` outlives the collector.
  static Result<std::unique_ptr<Collector>> create(CollectorOptions options, storage::Fs& fs);
  ~Collector() override;

  Status run();
  // As Ingest::stop, and then names sessions for symbolize::kNamingStopBound at most. What is asked
  // from then on and needs an agent is not answered any more.
  bool stop(std::chrono::milliseconds bound);

  const std::string& ingest_address() const { return ingest_->address(); }
  Status set_access(std::string token, std::shared_ptr<const ingest::TlsContext> tls) {
    return ingest_->set_access(std::move(token), std::move(tls));
  }

  // CollectorApi
  const control::Methods& methods() const override { return methods_; }
  std::vector<api::Agent> agents(const api::Selector& target) override;
  std::vector<api::Session> sessions(const api::Selector& target) override;
  std::vector<api::Device> devices(const std::string& match) override;
  std::vector<api::DeviceServer> device_servers() override;
  Result<api::Session> session(const std::string& name) override;
  Result<api::Agent> agent(const std::string& name) override;
  Result<api::Device> device(const std::string& name) override;
  api::Stats stats() override;
  control::WatchId watch_agents(std::function<void(const api::AgentEvent&)> on_event) override;
  control::WatchId watch_devices(std::function<void(const api::DeviceEvent&)> on_event) override;
  Result<control::WatchId> watch_session(
      const std::string& name, uint32_t interval_ms,
      std::function<void(const api::Session&, bool last)> on_session) override;
  void unwatch(control::WatchId id) override;
  Result<control::WatchId> watch_calls(const api::WatchCallsRequest& request,
                                       control::CallWatcher watcher) override;
  void unwatch_calls(control::WatchId id) override;
  void open_file(const std::string& name, const std::string& path,
                 control::Callback<std::shared_ptr<control::FileReader>> done) override;
  void convert_session(const std::string& name, uint32_t atf_version,
                       control::ConversionProgress progress,
                       control::Callback<api::ConversionEnd> done) override;

 private:
  struct Services;  // what needs no agent: collector.cc
  struct Controls;  // what talks to agents

  Collector(const CollectorOptions& options, storage::Fs& fs);
  // A session that is in the store, unless it is in use.
  void remove(const std::string& name);
  // If that is wanted, and it is sealed and has the names of its functions.
  void pack_when_ready(const std::string& name);

  // IngestObserver
  void agent_changed(const ingest::AgentSnapshot& agent) override;
  void agent_removed(ingest::AgentId id) override;
  void session_changed(const ingest::SessionSnapshot& session) override;
  void filter_wanted(const ingest::AgentSnapshot& agent, ingest::FilterRequest wanted) override;
  void modules_loaded(const std::vector<storage::ModuleInfo>& modules) override;
  bool to_be_named(const std::string& name, const std::string& directory,
                   std::vector<uint64_t> functions) override;

  const std::string root_;
  const bool pack_;
  storage::Fs& fs_;
  const ingest::SystemTime started_at_ = std::chrono::system_clock::now();
  control::Methods methods_;  // constant from create() on
  Registry registry_;
  Watches watches_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<Controls> controls_;  // constant from create() on
  // Last, so that its threads end before what they report to.
  std::unique_ptr<ingest::Ingest> ingest_;
};

}  // namespace collect::daemon
