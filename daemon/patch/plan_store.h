// Plans on the disk: kept for the next run, and handed to agents in a folder of their own. PATCH.md
// "Kept plans".
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::patch {

inline constexpr size_t kKeptPlans = 256;

// The plan of the file at `path`: a kept one that is the same file's (device, inode, size, time of
// its change) and whole, or a new one, which is kept if it can be. `cache`: a directory; empty:
// none is kept. Errors as in plan_of_file().
Result<std::vector<uint8_t>> plan_for(const std::string& path, const std::string& cache);

// Folders of this user's processes that were killed go after this time.
inline constexpr std::chrono::hours kKeepLostFolders{1};

// A folder that only this user can enter, below the system's for temporary files; removed with what
// is in it when this goes. Making one removes what killed processes have left.
class PlanFolder {
 public:
  static Result<PlanFolder> create();
  PlanFolder(PlanFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  PlanFolder& operator=(PlanFolder&&) = delete;
  ~PlanFolder();

  const std::string& path() const { return path_; }
  // The plan of the file `module`, under the name by which agents look for it: the build id, or
  // where there is none, device and inode of the file (kFileBegin).
  Status add(const std::vector<uint8_t>& plan, const std::string& module) const;
  // Lets other users read the plans that are in it, and no one write: for a process of another
  // user.
  Status share() const;

 private:
  explicit PlanFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace collect::patch
