// Takes the frames of a data channel that explain its pages: modules, threads, detail, stalls.
// WIRE.md "Metadata before records". Knows the streams that are open on the connection, and up to
// which record each of them came.
//
// Used within a turn of a DataLane; by the Peer between turns, which says which recording comes;
// threads() by any thread. A frame that the protocol does not allow changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/ingest/link/verdict.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "daemon/ingest/session/session_queue.h"
#include "formats/core/keyed_hash.h"
#include "storage/model/thread_pattern.h"

namespace collect::ingest {

// For one thread on one connection; later names come with its StreamClose.
inline constexpr uint32_t kMaxThreadRenames = 64;

class DataFrames {
 public:
  // `most_threads`: streams that may be open at once. Those that are opened count against the
  // account.
  DataFrames(uint32_t most_threads, std::shared_ptr<principal::Account> account,
             std::shared_ptr<LoadedModules> modules)
      : most_threads_(most_threads), account_(std::move(account)), modules_(std::move(modules)) {}

  // ---- within a turn; without a session nothing is stored
  // Not empty: the connection has to end. Else store() comes before the next frame.
  Verdict take(const wire::Frame& frame, StoredSession* session);
  // What the last frame brought. After kExhausted it is called again.
  Status store(StoredSession* session);
  // Not empty: the page must not come now.
  std::string fault_of(const Page& page);

  // ---- between turns
  // What comes next is of this recording; 0: of none. No stream of it is open.
  void begin_recording(uint32_t recording);

  // Threads that record on this connection, by id.
  std::vector<storage::ThreadIdentity> threads() const;

 private:
  struct OpenStream : storage::ThreadIdentity {
    uint32_t renames = 0;
    uint64_t next[2] = {0, 0};  // by lane: the number behind the last record that came
  };

  Verdict on_modules(const wire::Modules& modules);
  Verdict on_stream_open(const wire::StreamOpen& stream);
  void rename_thread(OpenStream& known, const wire::StreamOpen& stream);
  Verdict on_stream_close(const wire::StreamClose& stream);
  Verdict on_detail_state(const wire::DetailState& change);
  Verdict on_stalls(const wire::Stalls& stalls);

  const uint32_t most_threads_;
  const std::shared_ptr<principal::Account> account_;
  const std::shared_ptr<LoadedModules> modules_;

  uint32_t recording_ = 0;
  StoredSession* session_ = nullptr;  // within take()
  SessionQueue::Act to_store_;        // null: nothing
  // The turn's. Streams come and go, and names change, with the mutex held: threads() reads them.
  std::unordered_map<uint32_t, OpenStream, KeyedHash> streams_;
  mutable std::mutex streams_mutex_;
};

}  // namespace collect::ingest
