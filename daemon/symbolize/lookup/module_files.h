// Opens the files that may hold a module's symbols. Their paths come from peers, so: regular files
// only, found below the roots and never below /proc, /sys or /dev, on no kernel file system,
// through ordinary links but no magic ones (/proc/self/cwd leads wherever the process is).
// Nothing is opened for reading before that is known, nothing is ever waited for.
#pragma once

#include <string>
#include <vector>

#include "daemon/symbolize/protocol.h"

namespace collect::symbolize {

class ModuleFile {
 public:
  ModuleFile(int fd, std::string path, bool is_own_path)
      : fd_(fd), path_(std::move(path)), is_own_path_(is_own_path) {}
  ModuleFile(ModuleFile&& other) noexcept
      : fd_(other.release()), path_(std::move(other.path_)), is_own_path_(other.is_own_path_) {}
  ModuleFile& operator=(ModuleFile&&) = delete;
  ~ModuleFile();

  int fd() const { return fd_; }
  int release();
  const std::string& path() const { return path_; }
  bool is_own_path() const { return is_own_path_; }  // the path that the device reports

 private:
  int fd_;
  std::string path_;
  const bool is_own_path_;
};

// -1 for every path that is not allowed, not there, or not readable: no one learns which.
int open_module_file(const std::string& path, const std::vector<std::string>& real_roots);

// In the order of search: the module's own path, then each symbol directory and /usr/lib/debug by
// build id, then files of the same name in the symbol directories. At most kMaxCandidates.
std::vector<ModuleFile> open_module_files(const LookupRequest& request);

}  // namespace collect::symbolize
