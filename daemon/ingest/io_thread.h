// One io_context with its thread, and the peers and dial9 feeds that live on it. A process belongs
// to the thread that its process id hashes to, with both of its links, so a peer needs no lock.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/ingest/lane/dial9_feed.h"
#include "daemon/ingest/peer/peer.h"
#include "daemon/ingest/session/core.h"

namespace collect::ingest {

// A connected socket on its way to its owner's thread.
struct Handover {
  Handover() = default;
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover();

  bool is_feed = false;  // a dial9 stream, without any hello
  int handle = -1;
  TlsSession tls;  // of the handle; null: plain
  int family = 0;
  std::string peer;
  principal::Principal principal;
  std::string dialled;
  std::vector<uint8_t> early;
  std::vector<std::shared_ptr<void>> leases;
  CheckedHello checked;
};

class IoThread {
 public:
  explicit IoThread(IngestCore& core);
  ~IoThread();  // as join()

  void begin();  // without a thread: the owner polls io()
  Status run();  // starts the thread
  void join();   // stops the io_context with all that is pending, and joins

  asio::io_context& io() { return io_; }
  void take(std::shared_ptr<Handover> handover);  // any thread

  // ---- on the thread
  Peer* find(const ProcessId& id);
  // `key` is for a process that is new here, or that was restored.
  Peer& find_or_make(AgentSnapshot agent, const storage::ResumeKey& key);
  Dial9Feed* find_feed(const std::string& session);
  // The collector stops.
  void shut_down();

 private:
  void adopt(Handover& handover);
  void adopt_feed(std::shared_ptr<Link> link);
  void sweep_later();
  void sweep(SteadyTime now);

  IngestCore& core_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::map<ProcessId, std::shared_ptr<Peer>> peers_;  // this thread only
  std::vector<std::shared_ptr<Dial9Feed>> feeds_;     // this thread only
  asio::steady_timer sweep_timer_{io_};
  std::jthread thread_;
};

}  // namespace collect::ingest
