// A collector that a test writes the script of: it holds lists, keeps callbacks on request, and
// records what it was asked.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/control/collector_api.h"

namespace collect::control {

class FakeCollector : public CollectorApi {
 public:
  FakeCollector();

  void add_agent(const std::string& id, const std::string& process, api::AgentState state);
  void add_session(const std::string& id, api::SessionState state);  // in front: the newest

  // Changes a thing and tells its watchers.
  void change_agent(api::ChangeKind kind, const api::Agent& agent);
  void change_session(const api::Session& session, bool last);
  // Who watches calls from now on gets this, and the end.
  void answer_calls_with(const api::CallBatch& batch);
  // To all who watch calls.
  void send_calls(const api::CallBatch& batch);
  void end_calls(const Status& status);
  void change_device(api::ChangeKind kind, const api::Device& device);
  void set_device_servers(std::vector<api::DeviceServer> servers);

  // While held, slow calls are remembered and answered by release_all().
  void hold_answers();
  void release_all();
  void wait_for_held(size_t count);
  void wait_for_watches(size_t count);

  // Every session has these files.
  void add_file(const std::string& path, std::string content);
  void remove_file(const std::string& path);
  // What is read of every file from now on ends here, as when it is cut while it is sent.
  void cut_files_at(uint64_t bytes);

  void set_ingest_address(const std::string& address);

  // The error that every slow call answers with, if any.
  void fail_with(Error error);

  std::string last_argument();
  DetailCommand last_detail();
  api::SetFunctionFilterRequest last_filter();
  api::StartSessionRequest last_start();
  api::WatchCallsRequest last_calls();
  uint32_t last_interval_ms();
  uint32_t last_atf_version();
  // The newest conversion has come so far. False: no one wants it any more.
  bool convert_to(uint64_t done_bytes, uint64_t bytes);

  const Methods& methods() const override { return methods_; }
  std::vector<api::Agent> agents(const api::Selector& target) override;
  std::vector<api::Session> sessions(const api::Selector& target) override;
  std::vector<api::Device> devices(const std::string& match) override;
  std::vector<api::DeviceServer> device_servers() override;
  Result<api::Session> session(const std::string& name) override;
  Result<api::Agent> agent(const std::string& name) override;
  Result<api::Device> device(const std::string& name) override;
  api::Stats stats() override;
  WatchId watch_agents(std::function<void(const api::AgentEvent&)> on_event) override;
  WatchId watch_devices(std::function<void(const api::DeviceEvent&)> on_event) override;
  Result<WatchId> watch_session(const std::string& name, uint32_t interval_ms,
                                std::function<void(const api::Session&, bool)> on_change) override;
  void unwatch(WatchId id) override;
  Result<WatchId> watch_calls(const api::WatchCallsRequest& request, CallWatcher watcher) override;
  void unwatch_calls(WatchId id) override { unwatch(id); }
  virtual void attach(const std::string& address, Callback<api::Agent> done);
  virtual void detach(const std::string& name, Callback<api::Agent> done);
  virtual void start_session(const api::StartSessionRequest& request,
                             Callback<api::StartSessionResponse> done);
  virtual void stop_session(const api::Selector& target, Callback<api::StopSessionResponse> done);
  virtual void manifest(const std::string& name, Callback<api::Manifest> done);
  virtual void list_files(const std::string& name, Callback<api::ListFilesResponse> done);
  void open_file(const std::string& name, const std::string& path,
                 Callback<std::shared_ptr<FileReader>> done) override;
  void convert_session(const std::string& name, uint32_t atf_version, ConversionProgress progress,
                       Callback<api::ConversionEnd> done) override;
  virtual void snapshot_session(const std::string& name, Callback<api::Session> done);
  virtual void delete_session(const std::string& name, Callback<api::DeleteSessionResponse> done);
  virtual void set_detail(const DetailCommand& command,
                          Callback<std::vector<api::DetailOutcome>> done);
  virtual void set_triggers(const api::SetTriggersRequest& request,
                            Callback<api::SetTriggersResponse> done);
  Result<api::GetTriggersResponse> triggers(const api::Selector& target);
  virtual void set_function_filter(const api::SetFunctionFilterRequest& request,
                                   Callback<api::SetFunctionFilterResponse> done);
  virtual void annotate(const api::AnnotateRequest& request, Callback<api::AnnotateResponse> done);
  virtual void roll_container(const api::RollContainerRequest& request,
                              Callback<api::RollContainerResponse> done);
  api::Rules rules();
  virtual void set_rules(const api::Rules& rules, Callback<api::Rules> done);

 private:
  void serve_methods();

  struct SessionWatcher {
    std::string name;
    std::function<void(const api::Session&, bool)> on_change;
  };

  template <class T>
  void answer(const std::string& argument, T value, Callback<T> done);

  Methods methods_;
  std::mutex mutex_;  // guards everything; callbacks run under callback_mutex_ only
  std::mutex callback_mutex_;
  std::condition_variable changed_;
  std::vector<api::Agent> agents_;
  std::vector<api::Session> sessions_;
  std::map<WatchId, std::function<void(const api::AgentEvent&)>> agent_watchers_;
  std::map<WatchId, std::function<void(const api::DeviceEvent&)>> device_watchers_;
  std::map<WatchId, SessionWatcher> session_watchers_;
  std::map<WatchId, CallWatcher> call_watchers_;
  api::WatchCallsRequest last_calls_;
  std::unique_ptr<api::CallBatch> calls_;
  std::map<std::string, api::Device> devices_;
  std::vector<api::DeviceServer> device_servers_;
  WatchId last_watch_ = 0;
  bool hold_ = false;
  std::vector<std::function<void()>> held_;
  std::unique_ptr<Error> failure_;
  std::string last_argument_;
  DetailCommand last_detail_;
  api::GetTriggersResponse triggers_;  // guarded by mutex_
  api::SetFunctionFilterRequest last_filter_;
  api::StartSessionRequest last_start_;
  api::Rules rules_;
  uint32_t last_interval_ms_ = 0;
  uint32_t last_atf_version_ = 0;
  ConversionProgress conversion_;
  std::map<std::string, std::string> files_;
  std::shared_ptr<std::atomic<uint64_t>> cut_files_at_ =
      std::make_shared<std::atomic<uint64_t>>(UINT64_MAX);
  std::string ingest_address_ = "127.0.0.1:7710";
};

template <class T>
void FakeCollector::answer(const std::string& argument, T value, Callback<T> done) {
  std::function<void()> now;
  {
    const std::lock_guard lock(mutex_);
    last_argument_ = argument;
    if (failure_) {
      now = [done, error = *failure_] { done(error); };
    } else {
      now = [done, value = std::move(value)] { done(value); };
    }
    if (hold_) {
      held_.push_back(std::move(now));
      now = nullptr;
      changed_.notify_all();
    }
  }
  if (now) now();
}

}  // namespace collect::control
