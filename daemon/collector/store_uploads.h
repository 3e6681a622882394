// Copies sealed sessions into the store that the settings name, and with durability = object what
// changes in others, by a run of collect-store: HTTP, compression and what a server answers are no
// matter of this process. It begins again when the program ends, and what it was asked for and did
// not answer is asked again. daemon/upload/UPLOAD.md.
//
// Thread-safe. Its thread waits for the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/ingest/segment_store.h"
#include "daemon/symbolize/child_program.h"
#include "daemon/upload/store_request.h"
#include "daemon/upload/upload_status.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::daemon {

class StoreUploads final : public ingest::SegmentStore {
 public:
  static constexpr size_t kMaxReportBytes = 1u << 20;  // of one line

  // "session_…/pid_…" is in the store and is to go, unless somebody uses it; on this thread.
  using Remove = std::function<void(const std::string& name)>;

  // `request`: kFollow, with the root as its output. An empty URL: there is no store, and nothing
  // is started.
  StoreUploads(upload::StoreRequest request, Remove remove);
  ~StoreUploads() override { stop(); }

  Status start();
  void stop();  // what is under way goes on at the next start; no `done` is called any more
  bool has_store() const { return !request_.location.url.empty(); }
  const std::string& url() const { return request_.location.url; }
  upload::UploadStatus status() const;
  void store(ingest::StoredChanges changes, std::function<void()> done) override;

 private:
  struct Asked {
    std::string line;
    std::function<void()> done;
  };

  void serve();
  void ask_again();
  void answer(uint64_t id);
  Status take(Bytes bytes);
  void note(upload::UploadStatus status);

  const upload::StoreRequest request_;
  const Remove remove_;
  std::string line_;  // of the thread: what came of the next report
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  upload::UploadStatus status_;  // guarded by mutex_
  // One of each session at most: SessionSegments asks for no more.
  std::map<uint64_t, Asked> asked_;  // guarded by mutex_
  uint64_t last_id_ = 0;             // guarded by mutex_
  symbolize::ChildFeed feed_;
  std::atomic<bool> stopping_{false};
  std::jthread thread_;
};

}  // namespace collect::daemon
