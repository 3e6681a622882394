// The collector as the control plane sees it: what ingest reports is kept and shown, what people
// ask for is turned into commands to agents. DAEMON.md has the picture.
//
// Threads: the CollectorApi may be called from any thread. Answers come on ingest's io threads or
// on the collector's own; reading files, finding functions, naming sessions and converting them
// have a thread each.
#pragma once

#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/attach/attach.h"
#include "daemon/collector_registry.h"
#include "daemon/collector_watch.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"
#include "daemon/recording_options.h"
#include "daemon/rule_book.h"
#include "daemon/session_converter.h"
#include "daemon/session_use.h"
#include "daemon/symbolize/naming_queue.h"
#include "daemon/trigger_book.h"
#include "storage/session_layout.h"

namespace collect::daemon {

// Agents whose start filter is being looked up, or waits for that; later ones get none.
inline constexpr uint32_t kMaxStartFilters = 1'024;
// How long AttachAgent waits for somebody to answer before it shows the address as DIALING.
inline constexpr std::chrono::milliseconds kAttachWait{2'000};

class Collector final : public control::CollectorApi,
                        private ingest::IngestObserver,
                        private attach::DeviceObserver {
 public:
  // Binds the ingest address; nobody is served before run(). `fs` outlives the collector. Without
  // `devices` none is looked for.
  static Result<std::unique_ptr<Collector>> create(ingest::IngestOptions options, storage::Fs& fs,
                                                   const attach::AttachOptions& devices = {},
                                                   symbolize::SymbolizerOptions symbols = {});
  ~Collector() override;

  void run();
  // As Ingest::stop, and then names sessions for symbolize::kNamingStopBound at most. What is asked
  // from then on and needs an agent is not answered any more.
  bool stop(std::chrono::milliseconds bound);

  const std::string& ingest_address() const { return ingest_->address(); }
  Status set_access(std::string token, std::shared_ptr<const ingest::TlsContext> tls) {
    return ingest_->set_access(std::move(token), std::move(tls));
  }

  // CollectorApi
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
  void attach(const std::string& address, control::Callback<api::Agent> done) override;
  void detach(const std::string& name, control::Callback<api::Agent> done) override;
  void start_session(const api::StartSessionRequest& request,
                     control::Callback<api::StartSessionResponse> done) override;
  void stop_session(const api::Selector& target,
                    control::Callback<api::StopSessionResponse> done) override;
  void manifest(const std::string& name, control::Callback<api::Manifest> done) override;
  void list_files(const std::string& name, control::Callback<api::ListFilesResponse> done) override;
  void open_file(const std::string& name, const std::string& path,
                 control::Callback<std::shared_ptr<control::FileReader>> done) override;
  void convert_session(const std::string& name, uint32_t atf_version,
                       control::ConversionProgress progress,
                       control::Callback<api::ConversionEnd> done) override;
  void snapshot_session(const std::string& name, control::Callback<api::Session> done) override;
  void delete_session(const std::string& name,
                      control::Callback<api::DeleteSessionResponse> done) override;
  void set_detail(const control::DetailOrder& order,
                  control::Callback<std::vector<api::DetailOutcome>> done) override;
  void set_triggers(const api::SetTriggersRequest& request,
                    control::Callback<api::SetTriggersResponse> done) override;
  Result<api::GetTriggersResponse> triggers(const api::Selector& target) override;
  void set_function_filter(const api::SetFunctionFilterRequest& request,
                           control::Callback<api::SetFunctionFilterResponse> done) override;
  void annotate(const api::AnnotateRequest& request,
                control::Callback<api::AnnotateResponse> done) override;
  void roll_container(const api::RollContainerRequest& request,
                      control::Callback<api::RollContainerResponse> done) override;
  api::Rules rules() override;
  void set_rules(const api::Rules& rules, control::Callback<api::Rules> done) override;

 private:
  Collector(const ingest::IngestOptions& options, storage::Fs& fs,
            symbolize::SymbolizerOptions symbols);

  // IngestObserver
  void agent_changed(const ingest::AgentSnapshot& agent) override;
  void agent_removed(ingest::AgentId id) override;
  void session_changed(const ingest::SessionSnapshot& session) override;
  void filter_wanted(const ingest::AgentSnapshot& agent, ingest::FilterWish wish) override;
  bool to_be_named(const std::string& name, const std::string& directory,
                   std::vector<uint64_t> functions) override;
  void on_named(const std::string& name, storage::SymbolsState state, const std::string& said);

  // DeviceObserver: collector_devices.cc
  void device_changed(const attach::DeviceView& device, bool is_new) override;
  void device_removed(const attach::DeviceView& device) override;
  void place_found(const std::string& address) override;
  void place_gone(const std::string& address) override;
  void tell_devices(const ingest::AgentSnapshot& agent);

  struct RecordingOrder;  // collector_recording.cc
  enum class IfRecording : uint8_t { kFail, kGoOn };
  void start_recording(const ingest::AgentSnapshot& agent, const RecordingOptions& options,
                       IfRecording if_recording, control::Callback<api::Session> done);
  void choose_functions(const std::shared_ptr<RecordingOrder>& order);
  void set_recording_detail(const std::shared_ptr<RecordingOrder>& order,
                            std::function<void(const Status&)> done);
  void recording_began(const std::shared_ptr<RecordingOrder>& order, const Status& chosen);
  void stop_later(const std::string& session, std::chrono::nanoseconds duration);
  void apply_rules(const ingest::AgentSnapshot& agent);
  void apply_rule(const ingest::AgentSnapshot& agent, const MatchedRule& found);

  struct NamedSession {  // collector_files.cc
    ingest::SessionSnapshot shown;
    storage::SessionPlace place;
  };
  Result<NamedSession> named_session(const std::string& name) const;
  Result<NamedSession> sealed_session(const std::string& name) const;
  api::Session show_made(const storage::MadeSession& made, ingest::SystemTime start_time);
  Result<ingest::SessionSnapshot> recording_session(const std::string& name) const;
  void make_snapshot(const NamedSession& named, SessionConverter::Snapshot snapshot,
                     std::shared_ptr<void> use, control::Callback<api::Session> done);

  // Answers with what `find` makes of the agent's modules, on the thread that looks functions up.
  using FindFunctions =
      std::function<Result<std::vector<uint64_t>>(const std::vector<storage::ModuleInfo>&)>;
  void find_functions(const ingest::AgentSnapshot& agent, FindFunctions find,
                      ingest::Answer<std::vector<uint64_t>> done);

  struct DetailCall;  // collector_detail.cc
  struct DetailCommand;
  void find_detail_threads(const std::shared_ptr<DetailCommand>& command);
  void find_detail_functions(const std::shared_ptr<DetailCommand>& command);
  void send_detail(const std::shared_ptr<DetailCommand>& command);

  struct TriggersOrder;  // collector_triggers.cc
  void find_trigger_functions(const std::shared_ptr<TriggersOrder>& order);
  void watch_triggers(const std::shared_ptr<TriggersOrder>& order);
  void arm_for_triggers(const std::shared_ptr<TriggersOrder>& order);
  void fire(const ingest::AgentSnapshot& agent, const api::Trigger& trigger,
            const ingest::SeenEvent& seen);
  void end_detail(const ingest::AgentSnapshot& agent, const api::Trigger& trigger);

  struct FilterCall;  // collector_filter.cc
  struct FilterOrder;
  void send_filter(const std::shared_ptr<FilterCall>& call, const ingest::AgentSnapshot& agent,
                   std::vector<uint64_t> ids);
  // Until it is given another filter.
  void record_nothing(const ingest::AgentSnapshot& agent, std::function<void(const Status&)> done);
  void send_filter_part(const std::shared_ptr<FilterOrder>& order, uint32_t part);
  Result<std::vector<uint64_t>> start_filter_ids(const ingest::FilterWish& wish,
                                                 wire::SetFunctionFilter::Mode& mode,
                                                 ingest::StartFilter& outcome) const;

  struct PendingAttach {
    uint64_t id = 0;
    std::string address;
    control::Callback<api::Agent> done;
  };
  // Answers when an agent is up there; else, after a while, `otherwise` has to.
  void await_agent(const std::string& address, control::Callback<api::Agent> done,
                   std::function<void(uint64_t id)> otherwise);
  void answer_attach(uint64_t id, const Result<api::Agent>& agent);
  void attach_place(const std::string& address, const control::Callback<api::Agent>& done);

  const std::string root_;
  storage::Fs& fs_;
  const ingest::SystemTime started_at_ = std::chrono::system_clock::now();
  CollectorRegistry registry_;
  RuleBook rules_{fs_, root_};
  CollectorWatches watches_;
  asio::thread_pool files_{1};
  asio::thread_pool lookups_{1};
  // Agents ask for filters as they start: not where people wait for their answers.
  asio::thread_pool start_filters_{1};
  std::atomic<uint32_t> start_filters_waiting_{0};
  std::atomic<bool> stopping_{false};  // no function is looked up any more
  symbolize::NamingQueue naming_;
  SessionUse in_use_;
  SessionConverter converter_;
  TriggerBook triggers_;
  std::mutex attach_mutex_;
  std::vector<PendingAttach> attaching_;  // guarded by attach_mutex_
  uint64_t next_attach_ = 1;              // guarded by attach_mutex_
  std::unique_ptr<attach::Attach> attach_;
  // Last, so that its threads end before what they report to.
  std::unique_ptr<ingest::Ingest> ingest_;
};

}  // namespace collect::daemon
