// The threads of a session: their files, which of these are open, and what they add up to.
//
// Owned by a Session, used on its storage thread. A slot is a thread's place, from 0 in the order
// in which they came; it is also its place among the threads of the manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/core/keyed_hash.h"
#include "formats/core/result.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_types.h"
#include "storage/session/session_budget.h"
#include "storage/thread/thread_writer.h"

namespace collect::storage {

// How many files one session keeps open; those of the least recently written threads are closed
// first.
inline constexpr size_t kMaxOpenFiles = 512;

class SessionThreads {
 public:
  // `budget` may be null, and outlives it. `durable`: commit() syncs what was written.
  SessionThreads(SessionBudget* budget, bool durable) : budget_(budget), durable_(durable) {}

  // Null for one whose files cannot be read. `known_next`: what a manifest that was found has of
  // its lanes; behind what the files have, that much is missing.
  uint32_t add(std::unique_ptr<ThreadWriter> writer, uint64_t known_index_next = 0,
               uint64_t known_detail_next = 0);
  // What a manifest that was found has of records without numbers.
  void set_known_dropped(uint32_t slot, uint64_t index, uint64_t detail) {
    threads_[slot].known_dropped[0] = index;
    threads_[slot].known_dropped[1] = detail;
  }
  void set_stream(uint32_t slot, uint32_t stream_id) { by_stream_[stream_id] = slot; }
  // Its end is stored.
  void close(uint32_t slot, const StreamEnd& end);

  size_t size() const { return threads_.size(); }
  std::optional<uint32_t> slot_of(uint32_t stream_id) const;
  // The same of one whose files can be read. kDamaged: `what` came of a stream that was not opened;
  // `name` is the session's.
  Result<uint32_t> slot_for(uint32_t stream_id, const char* what, const std::string& name) const;
  // Null when its files cannot be read.
  ThreadWriter* writer(size_t slot) const { return threads_[slot].writer.get(); }
  // Written now: the next commit() syncs it, and its files are closed last.
  void written(uint32_t slot);

  // Runs `work`, which may open files of `writer`, or of none. When the machine is out of
  // descriptors it is tried again without the files of other threads.
  template <class Work>
  auto with_descriptors(ThreadWriter* writer, Work work);
  // Below kMaxOpenFiles, or what the budget leaves where many others need descriptors.
  Status limit_open_files();
  // Syncs and closes those of all threads.
  Status close_files() { return close_files_of_others(nullptr); }
  // After a writer closed its own files: `before` were open.
  void closed(size_t before) { count_open_files(before, 0); }
  // Files that the session has open beside those of threads.
  void hold_others(size_t files);

  Status commit();
  // Footers and headers of all; their files are closed.
  struct Sealed {
    Status error;                  // the first one; kExhausted: all of it is to be done again
    std::vector<Status> unsynced;  // of threads that are sealed all the same
    bool is_whole = true;
  };
  Sealed seal();
  Status remove_journals();  // of all; the first error

  // Zero of a stream that was not opened.
  StreamPosition position(uint32_t stream_id) const;
  std::vector<StreamPosition> positions() const;  // by stream
  void add_to(SessionTotals& totals) const;
  // What the files of a thread have, and what is missing in them. Nothing changes where they cannot
  // be read.
  void describe(size_t slot, ManifestThread& thread) const;
  // Describes all threads, with gaps and stalls, which are added.
  void describe(Manifest& manifest) const;
  // Counts as lost what the manifest on disk had, the files no longer have, and no agent sent
  // again.
  void account_for_damage(bool was_sealing);

  // So many stalls of each are kept one by one.
  size_t stalls_per_thread() const;

 private:
  struct Thread {
    std::unique_ptr<ThreadWriter> writer;
    uint64_t last_use = 0;
    bool uncommitted = false;
    uint64_t known_next[2] = {};
    uint64_t known_dropped[2] = {};
    bool closed = false;
  };
  Status close_files_of_others(const ThreadWriter* but);
  void count_open_files(size_t before, size_t after);

  SessionBudget* const budget_;
  const bool durable_;
  std::vector<Thread> threads_;
  std::unordered_map<uint32_t, uint32_t, KeyedHash> by_stream_;  // stream id -> slot
  std::vector<uint32_t> uncommitted_;                            // slots
  uint64_t use_counter_ = 0;
  size_t open_files_ = 0;  // of threads
  size_t other_files_ = 0;
};

template <class Work>
auto SessionThreads::with_descriptors(ThreadWriter* writer, Work work) {
  const auto open_now = [&] { return writer == nullptr ? 0 : writer->open_files(); };
  const size_t before = open_now();
  auto done = work();
  if (!done.ok() && done.code() == Code::kExhausted && open_files_ > open_now() &&
      close_files_of_others(writer).ok()) {
    done = work();
  }
  count_open_files(before, open_now());
  return done;
}

}  // namespace collect::storage
