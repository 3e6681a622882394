// A file system that breaks on request: at the k-th change, for once or for good (the process is
// gone, the disk turned read-only), or when it is full. Works on real files below, so that what is
// left can be looked at with any tool. power_loss_fs.h forgets what was not synced. For any thread:
// one change at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "storage/fs/posix_fs.h"

namespace collect::storage::test {

struct FaultPlan {
  uint64_t fail_at = UINT64_MAX;  // number of the change that fails, from 0
  Code code = Code::kIo;
  bool crash = false;              // everything after it fails too, reads as well
  bool short_write = false;        // the failing write leaves half of its bytes
  bool lasting = false;            // every change after it fails too
  bool syncs_only = false;         // fail_at counts syncs, and only they fail
  uint64_t capacity = UINT64_MAX;  // bytes of all files together; a write beyond leaves a part
};

class FaultFs final : public Fs {
 public:
  explicit FaultFs(FaultPlan plan = {}) : plan_(plan) {}

  uint64_t changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  void set_plan(const FaultPlan& plan) {
    const std::lock_guard lock(mutex_);
    plan_ = plan;
  }
  uint64_t used() const;
  // What space() says at most.
  uint64_t free_bytes = UINT64_MAX;
  std::optional<uint64_t> free_files;  // nothing: what the disk says

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status make_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  bool exists(const std::string& path) override { return real_.exists(path); }
  Result<SpaceInfo> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return real_.lock(path);
  }

 private:
  friend class FaultFile;
  struct Inode {
    uint64_t bytes = 0;
  };

  Status change(bool is_sync = false);  // counts one; the error when it is to fail

  mutable std::recursive_mutex mutex_;  // guards what follows, and what the files count
  PosixFs real_;
  FaultPlan plan_;
  uint64_t changes_ = 0;
  bool failed_ = false;
  bool crashed_ = false;
  bool crashed_before_ = false;  // the change that was just asked for
  std::map<std::string, std::shared_ptr<Inode>> files_;
};

}  // namespace collect::storage::test
