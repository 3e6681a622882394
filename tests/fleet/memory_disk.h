// A disk in memory that outlives the process that uses it, and that may be full or die. MemoryFs is
// how one process sees it: after unmount(), as after kill -9, nothing of that process reaches the
// disk any more. Thread-safe; File objects are not.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/fs/fs.h"

namespace collect::fleet {

class MemoryDisk {
 public:
  explicit MemoryDisk(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Every call fails from now on.
  void die() { dead_ = true; }
  // For a test that looks at what was on it.
  void revive() { dead_ = false; }
  bool is_dead() const { return dead_; }
  uint64_t used_bytes() const { return used_; }
  uint64_t open_files() const { return open_; }

 private:
  friend class MemoryFs;
  friend class MemoryFile;
  friend class MemoryLock;
  struct Node {
    bool is_directory = false;
    std::vector<uint8_t> bytes;
    std::map<std::string, std::shared_ptr<Node>, std::less<>> children;
  };

  // With mutex_ held. Null: there is none.
  std::shared_ptr<Node> find(std::string_view path) const;
  // The directory that the path's last name is in, and that name.
  std::pair<std::shared_ptr<Node>, std::string> parent_of(std::string_view path) const;

  const uint64_t capacity_;
  std::atomic<bool> dead_{false};
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> open_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<Node> root_ = std::make_shared<Node>(Node{true, {}, {}});  // guarded by mutex_
  std::set<std::string> locks_;                                              // guarded by mutex_
};

class MemoryFs final : public storage::Fs {
 public:
  explicit MemoryFs(MemoryDisk& disk) : disk_(disk) {}

  void unmount() { mounted_->store(false); }

  Result<std::unique_ptr<storage::File>> open(const std::string& path,
                                              storage::OpenMode mode) override;
  Status make_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  bool exists(const std::string& path) override;
  Result<storage::SpaceInfo> space(const std::string& path) override;
  Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path) override;

 private:
  Status check(const std::string& path) const;
  Status remove(const std::string& path, bool is_directory);

  MemoryDisk& disk_;
  const std::shared_ptr<std::atomic<bool>> mounted_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace collect::fleet
