#include "tests/daemon/control/fake_collector.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <utility>

#include "daemon/control/service/selector.h"

namespace collect::control {
namespace {

// The one word that a test has put into it.
std::string word_of(const api::Selector& target) {
  return target.any() + target.agent() + target.session() + target.device();
}

}  // namespace

// gRPC is not shut down between its users: now and then that takes the ten seconds of a poll.
FakeCollector::FakeCollector() {
  serve_methods();
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  (void)kept;
}

void FakeCollector::add_agent(const std::string& id, const std::string& process,
                              api::AgentState state) {
  const std::lock_guard lock(mutex_);
  api::Agent agent;
  agent.set_name("agents/" + id);
  agent.set_process_name(process);
  agent.set_pid(static_cast<uint32_t>(4000 + agents_.size()));
  agent.set_state(state);
  agents_.push_back(agent);
}

void FakeCollector::add_session(const std::string& id, api::SessionState state) {
  const std::lock_guard lock(mutex_);
  api::Session session;
  session.set_name("sessions/" + id);
  session.set_state(state);
  session.set_tag("tag-" + id);
  session.set_path("/data/" + id);
  sessions_.insert(sessions_.begin(), session);
}

void FakeCollector::change_agent(api::ChangeKind kind, const api::Agent& agent) {
  const std::lock_guard callback_lock(callback_mutex_);
  std::vector<std::function<void(const api::AgentEvent&)>> watchers;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(agents_, [&](const auto& known) { return known.name() == agent.name(); });
    if (kind != api::CHANGE_KIND_REMOVED) agents_.push_back(agent);
    for (auto& [id, watcher] : agent_watchers_) watchers.push_back(watcher);
  }
  api::AgentEvent event;
  event.set_kind(kind);
  *event.mutable_agent() = agent;
  for (auto& watcher : watchers) watcher(event);
}

void FakeCollector::change_session(const api::Session& session, bool last) {
  const std::lock_guard callback_lock(callback_mutex_);
  std::vector<std::function<void(const api::Session&, bool)>> watchers;
  {
    const std::lock_guard lock(mutex_);
    for (auto& known : sessions_) {
      if (known.name() == session.name()) known = session;
    }
    for (auto& [id, watcher] : session_watchers_) {
      if (watcher.name == session.name()) watchers.push_back(watcher.on_change);
    }
  }
  for (auto& watcher : watchers) watcher(session, last);
}

void FakeCollector::hold_answers() {
  const std::lock_guard lock(mutex_);
  hold_ = true;
}

void FakeCollector::release_all() {
  std::vector<std::function<void()>> held;
  {
    const std::lock_guard lock(mutex_);
    hold_ = false;
    held.swap(held_);
  }
  for (auto& answer : held) answer();
}

void FakeCollector::wait_for_held(size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_.size() >= count; });
}

void FakeCollector::wait_for_watches(size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return agent_watchers_.size() + device_watchers_.size() + session_watchers_.size() +
               call_watchers_.size() ==
           count;
  });
}

void FakeCollector::fail_with(Error error) {
  const std::lock_guard lock(mutex_);
  failure_ = std::make_unique<Error>(std::move(error));
}

void FakeCollector::set_ingest_address(const std::string& address) {
  const std::lock_guard lock(mutex_);
  ingest_address_ = address;
}

std::string FakeCollector::last_argument() {
  const std::lock_guard lock(mutex_);
  return last_argument_;
}

api::SetFunctionFilterRequest FakeCollector::last_filter() {
  const std::lock_guard lock(mutex_);
  return last_filter_;
}

DetailCommand FakeCollector::last_detail() {
  const std::lock_guard lock(mutex_);
  return last_detail_;
}

api::StartSessionRequest FakeCollector::last_start() {
  const std::lock_guard lock(mutex_);
  return last_start_;
}

uint32_t FakeCollector::last_interval_ms() {
  const std::lock_guard lock(mutex_);
  return last_interval_ms_;
}

std::vector<api::Agent> FakeCollector::agents(const api::Selector& target) {
  const std::lock_guard lock(mutex_);
  std::vector<api::Agent> found;
  for (const api::Agent& agent : agents_) {
    if (matches(agent, target)) found.push_back(agent);
  }
  return found;
}

std::vector<api::Session> FakeCollector::sessions(const api::Selector& target) {
  const std::lock_guard lock(mutex_);
  std::vector<api::Session> found;
  for (const api::Session& session : sessions_) {
    if (matches(session, target)) found.push_back(session);
  }
  return found;
}

Result<api::Agent> FakeCollector::agent(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const api::Agent& agent : agents_) {
    if (name.empty() || agent.name() == name) return agent;
  }
  return Error{Code::kNotFound, "no agent is named \"" + name + "\""};
}

Result<api::Device> FakeCollector::device(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, device] : devices_) {
    if (name.empty() || known == name) return device;
  }
  return Error{Code::kNotFound, "no device is named \"" + name + "\""};
}

Result<api::Session> FakeCollector::session(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const api::Session& session : sessions_) {
    if (name.empty() || session.name() == name) return session;
  }
  return Error{Code::kNotFound, "no session is named \"" + name + "\""};
}

api::Stats FakeCollector::stats() {
  const std::lock_guard lock(mutex_);
  api::Stats stats;
  stats.set_ingest_address(ingest_address_);
  stats.set_root("/data");
  stats.set_version("fake");
  stats.set_events_stored(123);
  return stats;
}

void FakeCollector::change_device(api::ChangeKind kind, const api::Device& device) {
  const std::lock_guard callback_lock(callback_mutex_);
  std::vector<std::function<void(const api::DeviceEvent&)>> watchers;
  {
    const std::lock_guard lock(mutex_);
    if (kind == api::CHANGE_KIND_REMOVED) {
      devices_.erase(device.name());
    } else {
      devices_[device.name()] = device;
    }
    for (auto& [id, watcher] : device_watchers_) watchers.push_back(watcher);
  }
  api::DeviceEvent event;
  event.set_kind(kind);
  *event.mutable_device() = device;
  for (auto& watcher : watchers) watcher(event);
}

void FakeCollector::set_device_servers(std::vector<api::DeviceServer> servers) {
  const std::lock_guard lock(mutex_);
  device_servers_ = std::move(servers);
}

std::vector<api::Device> FakeCollector::devices(const std::string& match) {
  const std::lock_guard lock(mutex_);
  std::vector<api::Device> all;
  for (const auto& [name, device] : devices_) {
    if (matches(device, match)) all.push_back(device);
  }
  return all;
}

std::vector<api::DeviceServer> FakeCollector::device_servers() {
  const std::lock_guard lock(mutex_);
  return device_servers_;
}

WatchId FakeCollector::watch_devices(std::function<void(const api::DeviceEvent&)> on_event) {
  const std::lock_guard lock(mutex_);
  device_watchers_[++last_watch_] = std::move(on_event);
  changed_.notify_all();
  return last_watch_;
}

WatchId FakeCollector::watch_agents(std::function<void(const api::AgentEvent&)> on_event) {
  const std::lock_guard lock(mutex_);
  agent_watchers_[++last_watch_] = std::move(on_event);
  changed_.notify_all();
  return last_watch_;
}

Result<WatchId> FakeCollector::watch_session(
    const std::string& name, uint32_t interval_ms,
    std::function<void(const api::Session&, bool)> on_change) {
  const std::lock_guard lock(mutex_);
  last_interval_ms_ = interval_ms;
  session_watchers_[++last_watch_] = {name, std::move(on_change)};
  changed_.notify_all();
  return last_watch_;
}

void FakeCollector::unwatch(WatchId id) {
  const std::lock_guard callback_lock(callback_mutex_);
  const std::lock_guard lock(mutex_);
  agent_watchers_.erase(id);
  device_watchers_.erase(id);
  session_watchers_.erase(id);
  call_watchers_.erase(id);
  changed_.notify_all();
}

Result<WatchId> FakeCollector::watch_calls(const api::WatchCallsRequest& request,
                                           CallWatcher watcher) {
  std::unique_lock lock(mutex_);
  last_calls_ = request;
  if (failure_) return *failure_;
  const WatchId id = ++last_watch_;
  call_watchers_[id] = watcher;
  changed_.notify_all();
  if (calls_ == nullptr) return id;
  const api::CallBatch batch = *calls_;
  lock.unlock();
  watcher.on_batch(batch);
  watcher.on_end({});
  return id;
}

void FakeCollector::answer_calls_with(const api::CallBatch& batch) {
  const std::lock_guard lock(mutex_);
  calls_ = std::make_unique<api::CallBatch>(batch);
}

api::WatchCallsRequest FakeCollector::last_calls() {
  const std::lock_guard lock(mutex_);
  return last_calls_;
}

void FakeCollector::send_calls(const api::CallBatch& batch) {
  const std::lock_guard callback_lock(callback_mutex_);
  std::map<WatchId, CallWatcher> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers = call_watchers_;
  }
  for (const auto& [id, watcher] : watchers) watcher.on_batch(batch);
}

void FakeCollector::end_calls(const Status& status) {
  const std::lock_guard callback_lock(callback_mutex_);
  std::map<WatchId, CallWatcher> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers = call_watchers_;
  }
  for (const auto& [id, watcher] : watchers) watcher.on_end(status);
}

void FakeCollector::attach(const std::string& address, Callback<api::Agent> done) {
  api::Agent agent;
  agent.set_name("agents/dialled");
  agent.set_address(address);
  agent.set_state(api::AGENT_STATE_DIALING);
  answer(address, agent, std::move(done));
}

void FakeCollector::detach(const std::string& name, Callback<api::Agent> done) {
  api::Agent agent;
  agent.set_name(name);
  agent.set_state(api::AGENT_STATE_GONE);
  answer(name, agent, std::move(done));
}

void FakeCollector::start_session(const api::StartSessionRequest& request,
                                  Callback<api::StartSessionResponse> done) {
  {
    const std::lock_guard lock(mutex_);
    last_start_ = request;
  }
  api::StartSessionResponse response;
  api::RecordingOutcome* outcome = response.add_outcomes();
  outcome->set_agent(word_of(request.target()));
  outcome->mutable_session()->set_name("sessions/started");
  outcome->mutable_session()->set_agent(word_of(request.target()));
  answer(word_of(request.target()), response, std::move(done));
}

void FakeCollector::stop_session(const api::Selector& target,
                                 Callback<api::StopSessionResponse> done) {
  api::StopSessionResponse response;
  for (api::Session& session : sessions({})) {
    session.set_state(api::SESSION_STATE_COMPLETE);
    *response.add_outcomes()->mutable_session() = session;
  }
  answer(word_of(target), response, std::move(done));
}

void FakeCollector::manifest(const std::string& name, Callback<api::Manifest> done) {
  api::Manifest manifest;
  manifest.set_session(name);
  api::ManifestStall* stall = manifest.add_stalls();
  stall->set_kind("page_wait");
  stall->set_thread(2);
  stall->set_first_ns(1000);
  stall->set_last_ns(9'001'000);
  stall->set_stalled_ns(4'000'000);
  stall->set_count(3);
  *manifest.add_stalls() = *stall;
  manifest.mutable_stalls(1)->clear_thread();
  manifest.mutable_stalls(1)->set_kind("stopped");
  manifest.mutable_stalls(1)->set_count(1);
  answer(name, manifest, std::move(done));
}

namespace {

class TextReader final : public FileReader {
 public:
  TextReader(std::string content, std::shared_ptr<std::atomic<uint64_t>> cut_at)
      : content_(std::move(content)), cut_at_(std::move(cut_at)) {}
  uint64_t size() const override { return content_.size(); }
  void read(uint64_t offset, size_t bytes, std::function<void(Result<std::string>)> done) override {
    const uint64_t end = std::min<uint64_t>(content_.size(), cut_at_->load());
    done(offset >= end ? std::string()
                       : content_.substr(offset, std::min<uint64_t>(bytes, end - offset)));
  }

 private:
  const std::string content_;
  const std::shared_ptr<std::atomic<uint64_t>> cut_at_;
};

}  // namespace

void FakeCollector::add_file(const std::string& path, std::string content) {
  const std::lock_guard lock(mutex_);
  files_[path] = std::move(content);
}

void FakeCollector::remove_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.erase(path);
}

void FakeCollector::cut_files_at(uint64_t bytes) {
  cut_files_at_->store(bytes);
}

void FakeCollector::list_files(const std::string& name, Callback<api::ListFilesResponse> done) {
  api::ListFilesResponse response;
  const auto session = this->session(name);
  if (!session.ok()) {
    done(session.error());
    return;
  }
  response.set_session(session->name());
  response.set_state(session->state());
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, content] : files_) {
      api::SessionFile* file = response.add_files();
      file->set_path(path);
      file->set_size_bytes(content.size());
    }
  }
  answer(name, response, std::move(done));
}

void FakeCollector::open_file(const std::string& name, const std::string& path,
                              Callback<std::shared_ptr<FileReader>> done) {
  std::shared_ptr<FileReader> reader;
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path);
    if (found != files_.end()) {
      reader = std::make_shared<TextReader>(found->second, cut_files_at_);
    }
  }
  if (reader == nullptr) {
    done(Error{Code::kNotFound, name + " has no file " + path});
    return;
  }
  answer(name, reader, std::move(done));
}

void FakeCollector::convert_session(const std::string& name, uint32_t atf_version,
                                    ConversionProgress progress,
                                    Callback<api::ConversionEnd> done) {
  {
    const std::lock_guard lock(mutex_);
    last_atf_version_ = atf_version;
    conversion_ = std::move(progress);
  }
  api::ConversionEnd end;
  end.mutable_session()->set_name("sessions/" + name + "_atf" + std::to_string(atf_version));
  end.mutable_session()->set_stored_bytes(4096);
  api::ConversionLoss* loss = end.add_missing();
  loss->set_what("thread_1/index.atf: gone");
  loss->set_count(7);
  end.add_left_out()->set_what("call depths");
  end.set_missing_left_out(2);
  answer(name, end, std::move(done));
}

bool FakeCollector::convert_to(uint64_t done_bytes, uint64_t bytes) {
  ConversionProgress progress;
  {
    const std::lock_guard lock(mutex_);
    progress = conversion_;
  }
  return progress(done_bytes, bytes);
}

uint32_t FakeCollector::last_atf_version() {
  const std::lock_guard lock(mutex_);
  return last_atf_version_;
}

// Of "late", the agent did not ship everything.
void FakeCollector::snapshot_session(const std::string& name, Callback<api::Session> done) {
  api::Session snapshot;
  snapshot.set_name("sessions/session_20260131_235959_snap1/pid_7");
  snapshot.set_events(1234);
  snapshot.set_state(name == "late" ? api::SESSION_STATE_RECOVERED : api::SESSION_STATE_COMPLETE);
  if (name == "late") snapshot.set_missing("its agent did not ship what it still had");
  answer(name, snapshot, std::move(done));
}

void FakeCollector::delete_session(const std::string& name,
                                   Callback<api::DeleteSessionResponse> done) {
  api::DeleteSessionResponse response;
  response.set_session(name);
  response.set_removed_files(3);
  response.set_removed_bytes(4096);
  answer(name, response, std::move(done));
}

void FakeCollector::set_detail(const DetailCommand& command,
                               Callback<std::vector<api::DetailOutcome>> done) {
  {
    const std::lock_guard lock(mutex_);
    last_detail_ = command;
  }
  api::DetailOutcome outcome;
  outcome.set_agent("agents/1");
  outcome.set_detail(command.mode);
  if (command.pre_roll_ns != 0) outcome.add_warnings("there is no pre-roll");
  answer(word_of(command.target), std::vector{outcome}, std::move(done));
}

api::Rules FakeCollector::rules() {
  const std::lock_guard lock(mutex_);
  return rules_;
}

void FakeCollector::set_rules(const api::Rules& rules, Callback<api::Rules> done) {
  {
    const std::lock_guard lock(mutex_);
    rules_ = rules;
  }
  answer("", rules, std::move(done));
}

// Those that are set; the first has fired three times.
void FakeCollector::set_triggers(const api::SetTriggersRequest& request,
                                 Callback<api::SetTriggersResponse> done) {
  api::SetTriggersResponse response;
  auto& outcome = *response.add_outcomes();
  outcome.set_agent("agents/1");
  outcome.set_session("sessions/one");
  *outcome.mutable_triggers() = request.triggers();
  outcome.set_functions_matched(static_cast<uint32_t>(request.triggers_size()) * 4);
  {
    const std::lock_guard lock(mutex_);
    triggers_.Clear();
    *triggers_.add_outcomes() = outcome;
    if (request.triggers_size() != 0) {
      triggers_.mutable_outcomes(0)->mutable_triggers(0)->set_fired_count(3);
    }
  }
  answer(word_of(request.target()), response, std::move(done));
}

Result<api::GetTriggersResponse> FakeCollector::triggers(const api::Selector&) {
  const std::lock_guard lock(mutex_);
  return triggers_;
}

void FakeCollector::set_function_filter(const api::SetFunctionFilterRequest& request,
                                        Callback<api::SetFunctionFilterResponse> done) {
  {
    const std::lock_guard lock(mutex_);
    last_filter_ = request;
  }
  api::SetFunctionFilterResponse response;
  auto& outcome = *response.add_outcomes();
  outcome.set_agent("agents/1");
  outcome.set_functions_matched(12);
  outcome.set_functions_patched(5);
  answer(word_of(request.target()), response, std::move(done));
}

void FakeCollector::annotate(const api::AnnotateRequest& request,
                             Callback<api::AnnotateResponse> done) {
  api::AnnotateResponse response;
  auto& outcome = *response.add_outcomes();
  outcome.set_agent("agents/1");
  outcome.set_time_ns(request.time_ns() == 0 ? 77 : request.time_ns());
  answer(word_of(request.target()) + "|" + request.text(), response, std::move(done));
}

void FakeCollector::roll_container(const api::RollContainerRequest& request,
                                   Callback<api::RollContainerResponse> done) {
  api::RollContainerResponse response;
  auto& outcome = *response.add_outcomes();
  outcome.set_agent("agents/1");
  outcome.set_path("/traces/session/pid_1/capture-000002.rtc");
  answer(word_of(request.target()), response, std::move(done));
}

}  // namespace collect::control
