// Copies sealed sessions into the store that the settings name, by a run of collect-store: HTTP,
// compression and what a server answers are no matter of this process. It begins again when the
// program ends. daemon/upload/UPLOAD.md.
//
// Thread-safe. Its thread waits for the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/upload/store_request.h"
#include "daemon/upload/upload_status.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::daemon {

class StoreUploads {
 public:
  static constexpr size_t kMaxReportBytes = 1u << 20;  // of one line

  // "session_…/pid_…" is in the store and is to go, unless it is in use; on this thread.
  using Remove = std::function<void(const std::string& name)>;

  // `request`: kFollow, with the root as its output. An empty URL: there is no store, and nothing
  // is started.
  StoreUploads(upload::StoreRequest request, Remove remove);
  ~StoreUploads() { stop(); }

  Status start();
  void stop();  // what is under way continues at the next start
  bool has_store() const { return !request_.location.url.empty(); }
  const std::string& url() const { return request_.location.url; }
  upload::UploadStatus status() const;

 private:
  void serve();
  Status take(Bytes bytes);
  void note(upload::UploadStatus status);

  const upload::StoreRequest request_;
  const Remove remove_;
  std::string line_;  // of the thread: what came of the next report
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  upload::UploadStatus status_;  // guarded by mutex_
  std::atomic<bool> stopping_{false};
  std::jthread thread_;
};

}  // namespace collect::daemon
