// The real file system. Stateless, so one object serves every session of the process.
#pragma once

#include "storage/fs.h"

namespace collect::storage {

class PosixFs final : public Fs {
 public:
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
};

}  // namespace collect::storage
