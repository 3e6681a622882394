// Sessions by the recording that they are parts of, and the parts of one made into one session.
// Used on one thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/fs/posix_fs.h"
#include "storage/rebuild/merge_parts.h"

namespace collect::select {

// The sessions that a path means: itself, or all below it.
Result<std::vector<std::string>> sessions_of(const std::string& path);

class Recordings {
 public:
  using Key = std::pair<std::array<uint8_t, 16>, uint32_t>;  // process id, number

  // A session's directory; one that was added before is passed by. kUnsupported: its manifest does
  // not say which process it is of.
  Status add(const std::string& directory);
  std::map<Key, std::vector<storage::SessionPart>>& parts() { return parts_; }

 private:
  std::set<std::string> seen_;
  std::vector<std::unique_ptr<storage::PosixFs>> files_;  // parts_ borrows them
  std::map<Key, std::vector<storage::SessionPart>> parts_;
};

struct MergedRecording {
  std::vector<storage::SessionPart> parts;
  std::string directory;
  storage::MergeReport report;
};

// Into a session below `output`.
Result<MergedRecording> merge_recording(std::vector<storage::SessionPart> parts,
                                        const std::string& output,
                                        const storage::MakingProgress& progress);

}  // namespace collect::select
