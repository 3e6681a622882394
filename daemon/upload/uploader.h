// Copies sealed sessions into a bucket, oldest first, on a thread of its own; recording and sealing
// never wait for it. UPLOAD.md has the picture.
//
// collect-store makes one for collectord (daemon/ctl/store/follow_command.cc). A session is added
// when its functions have been named: until then its manifest changes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "daemon/upload/part_upload.h"
#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"
#include "daemon/upload/store_request.h"
#include "daemon/upload/upload_status.h"
#include "storage/fs/clock.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"

namespace collect::upload {

inline constexpr size_t kMaxQueuedSessions = 1'000'000;
inline constexpr uint32_t kTurnsInARow = 3;  // that fail, before another session is tried

struct UploadSettings {
  S3Settings s3{};
  UploadSizes sizes{};
  RetrySettings retry{};
  uint64_t hold_ms = 60'000;  // until what no repetition mends is tried again
  KeepLocal keep_local{};
};

// What outlives the uploader.
struct UploadDependencies {
  storage::Fs& fs;
  storage::Clock& clock;
  CredentialsSource& credentials;  // used on the uploader's thread alone
  // Removes a session that COMMIT covers. kUnavailable: it is in use, later.
  std::function<Status(const storage::SessionPath&)> remove{};
  Pauses* pauses = nullptr;  // null: real ones
  WantedTables tables{};     // made on the uploader's thread
};

class Uploader {
 public:
  // kInvalidArgument: what is wrong in the settings. Nothing is sent before add().
  static Result<std::unique_ptr<Uploader>> start(const UploadSettings& settings,
                                                 UploadDependencies dependencies);
  ~Uploader();  // ends the request that is under way
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // A sealed session that was recorded, and who stored it: the epoch of then, not of now. One that
  // is queued already stays as it is. Any thread; does not block. kInvalidArgument: a snapshot or a
  // converted session; kLimit: kMaxQueuedSessions.
  Status add(const storage::SessionPath& session_path, const PartName& part);
  UploadStatus status() const;  // any thread
  // Waits until nothing is pending; false: the bound was over first. Any thread.
  bool wait_idle(uint64_t most_ms) const;

 private:
  struct Queued {
    storage::SessionPath session_path{};
    PartName part{};
    std::optional<uint64_t> bytes{};  // of its files; absent: not looked at yet
    uint64_t began_unix_ns = 0;       // by its name
    uint64_t ended_unix_ns = 0;       // known when it is committed
    uint32_t failures = 0;
    bool is_suspect = false;  // it failed so often that it may be its own fault: others come first
    uint64_t not_before_ns = 0;  // of the monotonic clock
    bool is_committed = false;   // waits to be removed
  };
  using Queue = std::map<std::string, Queued>;  // by name: the oldest first

  // Ends with stopping_.
  class RealPauses final : public Pauses {
   public:
    explicit RealPauses(Uploader& owner) : owner_(owner) {}
    bool pause(uint64_t ns) override;

   private:
    Uploader& owner_;
  };

  Uploader(const UploadSettings& settings, UploadDependencies dependencies,
           std::unique_ptr<S3Client> client);
  void run();
  // With `lock` held; they let go of it while they wait for the disk or the server.
  void measure(Queued& entry, std::unique_lock<std::mutex>& lock);
  void take_turn(Queue::iterator at, std::unique_lock<std::mutex>& lock);
  void wait(uint64_t ns, std::unique_lock<std::mutex>& lock);
  // With mutex_ held.
  Queue::iterator next_due(uint64_t now_ns, uint64_t& wait_ns);
  void succeed(Queue::iterator at, const UploadedPart& part);
  void fail(Queue::iterator at, const Error& error, bool at_store);
  void retire(Queue::iterator at);
  void suspect(Queued& entry);
  void no_longer_pending(const Queued& entry);
  bool is_idle() const;

  bool removes() const {
    return settings_.keep_local.until != KeepUntil::kAlways && dependencies_.remove;
  }
  uint64_t removal_due_ns(const Queued& entry) const;  // of the monotonic clock

  const UploadSettings settings_;
  const UploadDependencies dependencies_;
  RealPauses real_pauses_{*this};
  Pauses& pauses_;
  // Used by the uploader's thread alone; S3Client::cancel() by the destructor.
  const std::unique_ptr<S3Client> client_;
  Retries retries_;
  ObjectUpload objects_;
  PartUpload parts_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stopping_ = false;       // guarded by mutex_
  bool was_woken_ = false;      // guarded by mutex_: add() was called
  bool is_busy_ = false;        // guarded by mutex_: a session has its turn
  Queue queue_;                 // guarded by mutex_
  uint64_t held_until_ns_ = 0;  // guarded by mutex_
  UploadStatus status_;         // guarded by mutex_
  std::jthread thread_;
};

}  // namespace collect::upload
