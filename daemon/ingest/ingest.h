// The agents' side of the daemon: listens, dials, keeps every process's recording flowing into its
// session. DAEMON.md has the picture and the thread table.
//
// Every function may be called from any thread but run() and stop(), which belong to the owner.
// Answers come on io threads, exactly once; after stop() began, none may come at all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/acceptor.h"
#include "daemon/ingest/dialler.h"
#include "daemon/ingest/io_thread.h"
#include "daemon/ingest/session/core.h"
#include "daemon/ingest/session/old_sessions.h"

namespace collect::ingest {

class Ingest {
 public:
  // Binds the address; no one is served before run(). `fs` and `observer` outlive it.
  static Result<std::unique_ptr<Ingest>> bind(IngestOptions options, storage::Fs& fs,
                                              IngestObserver& observer);
  ~Ingest();

  // Once: finds the sessions that a former collector left open, serves, dials. The observer is
  // called from here on.
  Status run();
  // With IngestOptions::stepped, all that the threads would do now, on the caller's. False:
  // nothing.
  bool step();
  // With `stepped`, ends as a killed process does: nothing is sent, and nothing more is stored.
  void abandon();

  const std::string& address() const { return acceptor_->address(); }
  const IngestCounters& counters() const { return core_.counters; }
  principal::Budget& budget() { return core_.budget; }  // of all who use this machine
  // As IngestCore::set_access(): new connections are asked for these.
  Status set_access(std::string token, std::shared_ptr<const TlsContext> tls) {
    return core_.set_access(std::move(token), std::move(tls));
  }

  // Dials the address until it is detached. Answers with its entry, at once.
  void attach(const std::string& address, Answer<AgentSnapshot> done);
  // Likewise for an endpoint that only `connector` reaches, without an entry: what comes of it goes
  // to `on_dial`, on an io thread. The agent's address is `name` then.
  void attach(const std::string& name, Connector connector, OnDial on_dial);
  // Dials no more, an address or a place; kNotFound when it is not attached.
  void detach_address(const std::string& address, Answer<std::string> done);

  // For the process with this id; kNotFound when it is not known any more.
  void detach(const ProcessId& process, Answer<AgentSnapshot> done);
  void start_recording(const ProcessId& process, Answer<SessionSnapshot> done);
  void stop_recording(const ProcessId& process, Answer<SessionSnapshot> done);
  void modules(const ProcessId& process, Answer<std::vector<storage::ModuleInfo>> done);
  void threads(const ProcessId& process, Answer<std::vector<storage::ThreadIdentity>> done);
  void command(const ProcessId& process, wire::Command command, Answer<wire::CommandResult> done);

  // The process's agent holds the filter: noted in its sessions.
  void note_function_filter(const ProcessId& process, storage::FunctionFilter filter);
  // Called before the filter that the agent asked for is sent to it; kept for its sessions and for
  // status requests.
  void note_start_filter(const ProcessId& process, StartFilter outcome,
                         storage::FunctionFilter filter);
  // Answers with the device clock of the marker; `at_ns` 0: now.
  void annotate(const ProcessId& process, uint64_t at_ns, const std::string& text,
                Answer<uint64_t> done);
  // Answers with the path of the container that was begun.
  void roll_container(const ProcessId& process, Answer<std::string> done);

  // What the process's session holds now.
  void cut(const ProcessId& process, Answer<storage::SessionCut> done);

  // Looks for these among the events that the process's session gets from now on, instead of those
  // before; answers with the session's name. `on_seen` is called on a writer's thread.
  void watch_events(const ProcessId& process, std::vector<WatchedEvent> events, OnSeen on_seen,
                    Answer<std::string> done);

  // Ends the dial9 feed of this session; answers when it is sealed. kNotFound: no feed has it.
  void stop_feed(const std::string& session, Answer<SessionSnapshot> done);

  // Stops listening and informs the agents. Within the bound, sessions of agents that can come back
  // are left to the next start, and all others are sealed. True: each is one or the other; else the
  // next start recovers it.
  bool stop(milliseconds bound);

 private:
  Ingest(IngestOptions options, storage::Fs& fs, IngestObserver& observer);

  Status open();
  void route(std::shared_ptr<Link> link, const CheckedHello& checked, const std::string& dialled);
  void route_feed(std::shared_ptr<Link> link);
  std::shared_ptr<Handover> hand_over(Link& link);
  void end_threads();
  void stop_feed_on(size_t thread, const std::string& session, Answer<SessionSnapshot> done);
  IoThread& owner_of(const ProcessId& process);
  // On the process's thread; null: the process is not known.
  void with_peer(const ProcessId& process, std::function<void(Peer*)> work);
  // `work` gets the peer and `done`; without a peer `done` gets kNotFound.
  template <class T, class Work>
  void ask(const ProcessId& process, Answer<T> done, Work work);

  IngestCore core_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::shared_ptr<Acceptor> acceptor_;
  std::unique_ptr<Dialler> dialler_;
  OldSessions old_sessions_;
  size_t next_feed_thread_ = 0;  // io thread 0 only
  bool running_ = false;
};

}  // namespace collect::ingest
