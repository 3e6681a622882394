#include "daemon/ingest/io_thread.h"

#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/ingest/link/limits.h"
#include "formats/core/threads.h"

namespace collect::ingest {

Handover::~Handover() {
  if (handle >= 0) ::close(handle);
}

IoThread::IoThread(IngestCore& core) : core_(core) {}

IoThread::~IoThread() {
  join();
}

void IoThread::begin() {
  sweep_later();
}

Status IoThread::run() {
  begin();
  auto started = start_thread("ingest", [this] { io_.run(); });
  if (!started.ok()) return started.error();
  thread_ = std::move(*started);
  return {};
}

void IoThread::join() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  peers_.clear();
  feeds_.clear();
}

void IoThread::take(std::shared_ptr<Handover> handover) {
  asio::post(io_, [this, handover = std::move(handover)] { adopt(*handover); });
}

void IoThread::adopt(Handover& handover) {
  Socket socket(io_);
  std::error_code error;
  socket.assign(asio::generic::stream_protocol(handover.family, 0), handover.handle, error);
  if (error) {
    core_.refused(handover.peer, error.message());
    return;
  }
  handover.handle = -1;
  auto link = std::make_shared<Link>(std::move(socket), std::move(handover.tls), handover.peer,
                                     std::move(handover.early));
  link->set_principal(std::move(handover.principal));
  for (auto& lease : handover.leases) link->hold(std::move(lease));
  if (handover.is_feed) {
    adopt_feed(std::move(link));
    return;
  }
  if (core_.stopping) {
    link->refuse(wire::REFUSE_SHUTTING_DOWN, "the collector stops", true);
    return;
  }
  const CheckedHello& checked = handover.checked;
  Peer* const known = find(process_id_of(checked.hello));
  std::optional<storage::ResumeKey> fresh;
  std::optional<Refusal> refusal;
  if (known != nullptr) {
    refusal = check_resume(known->resume_key(), checked, link->principal());
  } else if (checked.hello.channel() != wire::CHANNEL_CONTROL) {
    refusal = Refusal{wire::REFUSE_PROTOCOL, "data of a process that has not opened control", true};
  } else {
    fresh = make_resume_key(link->principal());
    if (!fresh) refusal = no_randomness();
  }
  if (refusal) {
    core_.refused(link->peer(), refusal->reason);
    link->refuse(refusal->code, refusal->reason, refusal->retry);
    return;
  }
  Peer& peer = known != nullptr ? *known : find_or_make(agent_from_hello(checked.hello), *fresh);
  peer.adopt(std::move(link), checked.hello, handover.dialled, known == nullptr);
}

void IoThread::adopt_feed(std::shared_ptr<Link> link) {
  if (core_.stopping) {
    core_.refused(link->peer(), "a dial9 stream: the collector stops");
    link->close();
    return;
  }
  feeds_.push_back(std::make_shared<Dial9Feed>(core_, io_, std::move(link)));
  feeds_.back()->start();
}

Dial9Feed* IoThread::find_feed(const std::string& session) {
  for (const std::shared_ptr<Dial9Feed>& feed : feeds_) {
    if (feed->has_session(session)) return feed.get();
  }
  return nullptr;
}

void IoThread::shut_down() {
  for (auto& [id, peer] : peers_) peer->shut_down();
  for (const std::shared_ptr<Dial9Feed>& feed : feeds_) feed->shut_down();
}

Peer* IoThread::find(const ProcessId& id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

Peer& IoThread::find_or_make(AgentSnapshot agent, const storage::ResumeKey& key) {
  std::shared_ptr<Peer>& peer = peers_[agent.process_id];
  if (!peer) peer = std::make_shared<Peer>(core_, io_, std::move(agent), key);
  return *peer;
}

void IoThread::sweep_later() {
  const milliseconds pace =
      std::clamp(core_.options.heartbeat / 4, milliseconds{10}, kSweepInterval);
  sweep_timer_.expires_after(pace);
  sweep_timer_.async_wait([this](const std::error_code& error) {
    if (error) return;
    const Status done = contain([this] { sweep(std::chrono::steady_clock::now()); });
    if (!done.ok()) report_fault("ingest", done.error());
    sweep_later();
  });
}

void IoThread::sweep(SteadyTime now) {
  core_.data_threads.relieve(now);
  core_.seal_threads.relieve(now);
  const bool may_linger = peers_.size() <= kMaxIdlePeers;
  for (auto at = peers_.begin(); at != peers_.end();) {
    const std::shared_ptr<Peer> peer = at->second;
    at = peer->sweep(now, may_linger) ? std::next(at) : peers_.erase(at);
  }
  std::erase_if(feeds_, [now](const auto& feed) { return !feed->sweep(now); });
  core_.lane_buffers.trim();
}

}  // namespace collect::ingest
