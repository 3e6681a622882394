// A file system that knows what its disk keeps when the power goes. Works on another Fs, which does
// the real work (and fails on request: fault_fs.h); afterwards lose_power() makes the real files
// into what a disk could hold at that moment.
//
// The model, for each file: its bytes as of the last sync, and every write and cut since. Since
// then each 512-byte sector may be as of any moment, and so may the length; what was never written
// is zeros. For each directory: its names as of its last sync; every name made, replaced or removed
// since is kept or not, independent of the file's bytes. A rename is kept whole or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/fs/fs.h"

namespace collect::storage::test {

enum class Kept : uint8_t {
  kSynced,  // nothing else
  kNames,   // names as they are, bytes as synced
  kBytes,   // bytes as they are, names as synced
  kEverything,
  kSome,  // by `seed`: any of what the model allows
};

class PowerLossFs final : public Fs {
 public:
  // All that is below `base` now is on the disk; what happens elsewhere is not looked at.
  PowerLossFs(Fs& below, std::string base);

  // The next process works through another Fs, on the same disk.
  void continue_with(Fs& below) { below_ = &below; }
  void lose_power(Kept kept, uint64_t seed = 0);

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status make_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return below_->list_directory(path);
  }
  bool exists(const std::string& path) override { return below_->exists(path); }
  Result<SpaceInfo> space(const std::string& path) override { return below_->space(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }

 private:
  friend class PowerLossFile;
  struct Change {
    bool cut = false;  // to `offset` bytes; else `bytes` are written there
    uint64_t offset = 0;
    std::vector<uint8_t> bytes{};
  };
  struct Inode {
    std::vector<uint8_t> synced;
    std::vector<Change> since;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;  // null: a directory
  // `name` gets `inode`, or goes when `removed`; `from` goes with it.
  struct NameChange {
    std::string name;
    std::shared_ptr<Inode> inode{};
    bool removed = false;
    std::string from{};
  };

  static void apply(const Change& change, std::vector<uint8_t>& bytes);
  static void apply(const NameChange& change, Names& names);
  static std::vector<uint8_t> survivor(const Inode& inode, Kept kept, uint64_t seed);
  void load();
  void note(NameChange change);
  std::shared_ptr<Inode> inode_of(const std::string& path);

  Fs* below_;
  const std::string base_;
  Names now_;
  Names durable_;
  std::vector<NameChange> unsynced_;  // in order
};

}  // namespace collect::storage::test
