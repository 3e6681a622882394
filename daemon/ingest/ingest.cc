#include "daemon/ingest/ingest.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cstring>
#include <thread>

#include "daemon/ingest/link/handshake.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {
namespace {

constexpr std::chrono::microseconds kStopPoll{200};

}  // namespace

Ingest::Ingest(IngestOptions options, storage::Fs& fs, IngestObserver& observer)
    : core_(std::move(options), fs, observer),
      old_sessions_(core_, [this](const storage::Manifest& manifest, const storage::ResumeKey& key,
                                  const storage::SessionPath& session_path) {
        const storage::SessionIdentity& identity = manifest.identity;
        owner_of(identity.process_id)
            .find_or_make(agent_from_identity(identity), key)
            .restore(session_path, key, identity.recording, unix_time(manifest.created_unix_ns));
      }) {
  const unsigned wanted = core_.options.io_threads;
  const unsigned count =
      std::clamp(wanted != 0 ? wanted : std::thread::hardware_concurrency(), 1u, kMaxIoThreads);
  for (unsigned index = 0; index < count; ++index) {
    threads_.push_back(std::make_unique<IoThread>(core_));
  }
}

Result<std::unique_ptr<Ingest>> Ingest::bind(IngestOptions options, storage::Fs& fs,
                                             IngestObserver& observer) {
  std::unique_ptr<Ingest> ingest(new Ingest(std::move(options), fs, observer));
  Status opened = ingest->open();
  if (!opened.ok()) return opened.error();
  return ingest;
}

Ingest::~Ingest() {
  stop(milliseconds{0});
}

Status Ingest::open() {
  asio::io_context& first = threads_.front()->io();
  acceptor_ = std::make_shared<Acceptor>(
      core_, first,
      [this](std::shared_ptr<Link> link, const CheckedHello& checked) { route(link, checked, ""); },
      [this](std::shared_ptr<Link> link) { route_feed(std::move(link)); });
  const int listening = core_.options.listening;
  COLLECT_TRY(listening < 0 ? acceptor_->open(core_.options.listen)
                            : acceptor_->take_over(listening));
  dialler_ = std::make_unique<Dialler>(
      core_, first,
      [this](std::shared_ptr<Link> link, const CheckedHello& checked, const std::string& dialled) {
        route(std::move(link), checked, dialled);
      });
  return {};
}

Status Ingest::run() {
  COLLECT_CHECK(!running_);
  running_ = true;
  old_sessions_.find();
  acceptor_->start();
  for (const std::string& address : core_.options.attach) {
    // On this thread, because no io thread runs yet; the config has checked the address.
    const Result<AgentSnapshot> attached = dialler_->attach(address);
    if (!attached.ok()) spdlog::warn("attach {}: {}", address, to_string(attached.error()));
  }
  for (auto& thread : threads_) {
    if (core_.options.stepped) {
      thread->begin();
    } else {
      COLLECT_TRY(thread->run());
    }
  }
  old_sessions_.list();
  return {};
}

bool Ingest::step() {
  bool did_something = false;
  for (auto& thread : threads_) did_something |= thread->io().poll() != 0;
  while (core_.data_threads.work_one()) did_something = true;
  while (core_.seal_threads.work_one()) did_something = true;
  return did_something;
}

IoThread& Ingest::owner_of(const ProcessId& process) {
  uint64_t word = 0;  // the id is random: any part of it is a hash
  std::memcpy(&word, process.data(), sizeof word);
  return *threads_[word % threads_.size()];
}

void Ingest::route(std::shared_ptr<Link> link, const CheckedHello& checked,
                   const std::string& dialled) {
  const ProcessId process = process_id_of(checked.hello);
  if (!dialled.empty()) {
    core_.detached.remove(process);
  } else if (core_.detached.holds(process)) {
    core_.refused(link->peer(), "detached by command");
    link->refuse(wire::REFUSE_DETACHED, "detached by command", false);
    return;
  }
  std::shared_ptr<Handover> handover = hand_over(*link);
  if (!handover) return;
  handover->dialled = dialled;
  handover->checked = checked;
  owner_of(process).take(std::move(handover));
}

// Feeds know no other connection: any thread will do.
void Ingest::route_feed(std::shared_ptr<Link> link) {
  if (core_.feeds.fetch_add(1) >= kMaxFeeds) {
    core_.feeds.fetch_sub(1);
    core_.refused(link->peer(), fmt::format("more than {} dial9 streams", kMaxFeeds));
    link->close();
    return;
  }
  link->hold(std::shared_ptr<void>(
      &core_, [](void* core) { static_cast<IngestCore*>(core)->feeds.fetch_sub(1); }));
  std::shared_ptr<Handover> handover = hand_over(*link);
  if (!handover) return;
  handover->is_feed = true;
  threads_[next_feed_thread_++ % threads_.size()]->take(std::move(handover));
}

// Null when the socket is lost, which the log says.
std::shared_ptr<Handover> Ingest::hand_over(Link& link) {
  auto handover = std::make_shared<Handover>();
  std::error_code error;
  handover->family = link.socket().local_endpoint(error).protocol().family();
  handover->peer = link.peer();
  handover->principal = link.principal();
  handover->early = link.take_early();
  handover->leases = link.take_leases();
  handover->handle = link.release();
  handover->tls = link.stream().take_session();
  if (!error && handover->handle >= 0) return handover;
  core_.refused(handover->peer, error ? error.message() : "the socket can't change its thread");
  return nullptr;
}

void Ingest::with_peer(const ProcessId& process, std::function<void(Peer*)> work) {
  IoThread& thread = owner_of(process);
  asio::post(thread.io(),
             [&thread, process, work = std::move(work)] { work(thread.find(process)); });
}

template <class T, class Work>
void Ingest::ask(const ProcessId& process, Answer<T> done, Work work) {
  with_peer(process, [done = std::move(done), work = std::move(work)](Peer* peer) {
    if (peer != nullptr) {
      work(*peer, done);
    } else {
      done(Error{Code::kNotFound, "this agent is gone, and its process is not known any more"});
    }
  });
}

void Ingest::attach(const std::string& address, Answer<AgentSnapshot> done) {
  asio::post(threads_.front()->io(),
             [this, address, done = std::move(done)] { done(dialler_->attach(address)); });
}

void Ingest::attach(const std::string& name, Connector connector, OnDial on_dial) {
  asio::post(threads_.front()->io(), [this, name, connector = std::move(connector),
                                      on_dial = std::move(on_dial)] {
    if (core_.stopping) return;
    const Status attached = dialler_->attach(name, connector, on_dial);
    if (attached.ok() || attached.code() == Code::kAlreadyExists) return;
    on_dial({DialReport::State::kDialing, attached.error().message, wire::REFUSE_UNSPECIFIED});
  });
}

void Ingest::detach_address(const std::string& address, Answer<std::string> done) {
  asio::post(threads_.front()->io(), [this, address, done = std::move(done)] {
    if (dialler_->detach(address)) {
      done(address);
    } else {
      done(Error{Code::kNotFound, address + " is not attached"});
    }
  });
}

void Ingest::detach(const ProcessId& process, Answer<AgentSnapshot> done) {
  ask(process, std::move(done), [](Peer& peer, auto answer) { peer.detach(std::move(answer)); });
}

void Ingest::start_recording(const ProcessId& process, Answer<SessionSnapshot> done) {
  ask(process, std::move(done),
      [](Peer& peer, auto answer) { peer.start_recording(std::move(answer)); });
}

void Ingest::stop_recording(const ProcessId& process, Answer<SessionSnapshot> done) {
  ask(process, std::move(done),
      [](Peer& peer, auto answer) { peer.stop_recording(std::move(answer)); });
}

void Ingest::modules(const ProcessId& process, Answer<std::vector<storage::ModuleInfo>> done) {
  ask(process, std::move(done), [](Peer& peer, const auto& answer) { answer(peer.modules()); });
}

void Ingest::threads(const ProcessId& process, Answer<std::vector<storage::ThreadIdentity>> done) {
  ask(process, std::move(done), [](Peer& peer, const auto& answer) { answer(peer.threads()); });
}

void Ingest::annotate(const ProcessId& process, uint64_t at_ns, const std::string& text,
                      Answer<uint64_t> done) {
  ask(process, std::move(done),
      [at_ns, text](Peer& peer, auto answer) { peer.annotate(at_ns, text, std::move(answer)); });
}

void Ingest::note_function_filter(const ProcessId& process, storage::FunctionFilter filter) {
  with_peer(process, [filter = std::move(filter)](Peer* peer) {
    if (peer != nullptr) peer->note_function_filter(filter);
  });
}

void Ingest::note_start_filter(const ProcessId& process, StartFilter outcome,
                               storage::FunctionFilter filter) {
  with_peer(process, [outcome = std::move(outcome), filter = std::move(filter)](Peer* peer) {
    if (peer != nullptr) peer->note_start_filter(outcome, filter);
  });
}

void Ingest::roll_container(const ProcessId& process, Answer<std::string> done) {
  ask(process, std::move(done),
      [](Peer& peer, auto answer) { peer.roll_container(std::move(answer)); });
}

void Ingest::cut(const ProcessId& process, Answer<storage::SessionCut> done) {
  ask(process, std::move(done), [](Peer& peer, auto answer) { peer.cut(std::move(answer)); });
}

void Ingest::watch_events(const ProcessId& process, std::vector<WatchedEvent> events,
                          OnSeen on_seen, Answer<std::string> done) {
  ask(process, std::move(done),
      [events = std::move(events), on_seen = std::move(on_seen)](Peer& peer, const auto& answer) {
        peer.watch_events({events, on_seen}, answer);
      });
}

void Ingest::stop_feed(const std::string& session, Answer<SessionSnapshot> done) {
  stop_feed_on(0, session, std::move(done));
}

// Asks one thread after the other: there are few, and only they know their feeds.
void Ingest::stop_feed_on(size_t thread, const std::string& session, Answer<SessionSnapshot> done) {
  if (thread == threads_.size()) {
    done(Error{Code::kNotFound, session + " is over: no dial9 stream goes into it"});
    return;
  }
  asio::post(threads_[thread]->io(), [this, thread, session, done = std::move(done)] {
    if (Dial9Feed* const feed = threads_[thread]->find_feed(session)) {
      feed->stop(done);
    } else {
      stop_feed_on(thread + 1, session, done);
    }
  });
}

void Ingest::command(const ProcessId& process, wire::Command command,
                     Answer<wire::CommandResult> done) {
  ask(process, std::move(done), [command = std::move(command)](Peer& peer, auto answer) {
    peer.command(command, std::move(answer));
  });
}

bool Ingest::stop(milliseconds bound) {
  if (!running_) return core_.live_sessions == 0;
  running_ = false;
  core_.stopping = true;
  const auto deadline = std::chrono::steady_clock::now() + bound;
  asio::post(threads_.front()->io(), [this] {
    acceptor_->stop();
    dialler_->stop();
  });
  std::atomic<size_t> stopped{0};
  for (auto& thread : threads_) {
    asio::post(thread->io(), [&thread, &stopped] {
      thread->shut_down();
      ++stopped;
    });
  }
  // Reports of sealed sessions come to the io threads, which continue until all is done.
  while (stopped != threads_.size() || core_.live_sessions != 0) {
    if (std::chrono::steady_clock::now() >= deadline && stopped == threads_.size()) break;
    if (!core_.options.stepped) {
      std::this_thread::sleep_for(kStopPoll);
    } else if (!step() && stopped == threads_.size()) {
      break;  // time does not pass meanwhile
    }
  }
  const bool in_time = core_.live_sessions == 0;
  end_threads();
  return in_time;
}

void Ingest::abandon() {
  COLLECT_CHECK(core_.options.stepped);
  running_ = false;
  core_.stopping = true;
  end_threads();
}

void Ingest::end_threads() {
  for (auto& thread : threads_) thread->io().stop();
  core_.stop_threads();  // nothing posts to an io thread that is gone
  for (auto& thread : threads_) thread->join();
}

}  // namespace collect::ingest
