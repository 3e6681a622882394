// The real file system, below one root. A path that is elsewhere is refused; below the root no
// link is followed (rooted_directory.h). Only making, syncing and looking for the root itself and
// what leads to it goes by the path alone: those are the user's own words. Stateless, so one object
// serves every session of the process.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "storage/fs/fs.h"
#include "storage/fs/rooted_directory.h"

namespace collect::storage {

class PosixFs final : public Fs {
 public:
  // Without a root of its own, no component of any path may be a link. Paths are given as the root
  // is, or from "/" on.
  //
  // The root is looked up for each operation: where it was moved, the next one does not find it.
  explicit PosixFs(std::string root = "/", Lookup lookup = Lookup::kKernel);
  // Stays in this directory when it is renamed, and does not make it again when it is removed.
  // Takes an absolute path.
  explicit PosixFs(RootedDirectory root);
  // Opens a directory that is there, and stays in it.
  static Result<PosixFs> hold(const std::string& root);

  // Absolute.
  const std::string& root() const { return root_; }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status make_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  bool exists(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;

 private:
  struct Entry;
  Result<Entry> entry_of(const std::string& path) const;
  std::optional<std::string_view> below_root(std::string_view path) const;
  bool is_way_to_root(std::string_view path) const;

  // Constant after construction.
  std::string given_;
  std::string root_;  // the same, absolute
  Lookup lookup_;
  std::shared_ptr<const RootedDirectory> held_;  // null: looked up each time
};

}  // namespace collect::storage
