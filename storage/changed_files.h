// Which bytes of a directory's files have changed: a file system that passes everything on and
// keeps account of it, so that the same can be done to a copy (daemon/upload/UPLOAD.md "Segments").
// It knows no format: lanes, journals, containers and manifests are bytes at some offset.
//
// As thread-safe as Fs says; take() belongs to the thread that writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/fs.h"
#include "storage/session_layout.h"

namespace collect::storage {

// Of one file; then the smallest hole between two is filled.
inline constexpr size_t kMaxChangedRanges = 64;

// What is done to the copy, in this order.
struct ChangedFile {
  bool is_removed = false;
  bool is_whole = false;                  // it is another file now: all of it is copied
  std::optional<uint64_t> cut_to{};       // bytes from here on go
  std::map<uint64_t, uint64_t> ranges{};  // [first, second) are copied

  void cut(uint64_t bytes);
  void write(uint64_t from, uint64_t to);
  // What came later.
  void then(const ChangedFile& later);
  bool operator==(const ChangedFile&) const = default;
};

using ChangedFiles = std::map<std::string, ChangedFile>;  // by path
// `changes`, and then `later`.
void add_changes(ChangedFiles& changes, const ChangedFiles& later);
// Every file of the session, whole: for a copy that has nothing yet.
Result<ChangedFiles> all_files(Fs& fs, const SessionPath& session_path);

class ChangeTrackingFs final : public Fs {
 public:
  explicit ChangeTrackingFs(Fs& fs) : fs_(fs), changes_(std::make_shared<Changes>()) {}

  // Of the session's files (session_files.h) since the last call, with their paths below its
  // `directory`; all else is forgotten: the resume key is a secret, and the reserve holds nothing.
  ChangedFiles take(const std::string& directory);
  bool has_changes() const;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status make_directories(const std::string& path) override { return fs_.make_directories(path); }
  Status make_directory(const std::string& path) override { return fs_.make_directory(path); }
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override { return fs_.remove_directory(path); }
  Status sync_directory(const std::string& path) override { return fs_.sync_directory(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return fs_.list_directory(path);
  }
  bool exists(const std::string& path) override { return fs_.exists(path); }
  Result<SpaceInfo> space(const std::string& path) override { return fs_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return fs_.lock(path);
  }

 private:
  // Files may outlive this object.
  struct Changes {
    std::mutex mutex;
    ChangedFiles files;  // guarded by mutex
  };
  class TrackedFile;

  Fs& fs_;
  const std::shared_ptr<Changes> changes_;
};

}  // namespace collect::storage
