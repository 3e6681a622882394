// Which sessions below a root are ready to be uploaded. What wants them there is a poll: the queue
// is the directories themselves, so nothing is lost with a process.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/upload/part_keys.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::ctl {

class SealedSessions {
 public:
  // A recording that lasts long is looked at that rarely.
  static constexpr uint64_t kLongestPauseNs = 16'000'000'000;
  // For so long after the seal a session waits for the names of its functions, which go into its
  // manifest, and for its packing.
  static constexpr uint64_t kPatienceNs = 3'600'000'000'000;

  struct Ready {
    storage::SessionPath session_path;
    upload::PartName part;
  };

  // `packed`: they are packed by someone else, who begins when they have names.
  SealedSessions(storage::Fs& fs, std::string root, bool packed)
      : fs_(fs), root_(std::move(root)), packed_(packed) {}

  // Those that have become ready since the last look, oldest first. `now_ns`: monotonic;
  // `unix_ns`: time of day. An error of the root; one of a session is a matter of its next look.
  Result<std::vector<Ready>> look(uint64_t now_ns, uint64_t unix_ns);

 private:
  struct Seen {
    uint64_t first_ns = 0;
    uint64_t next_ns = 0;
    bool is_done = false;
    uint64_t round = 0;  // of the look that saw it last
  };

  // Nothing of it changes any more.
  bool is_final(const storage::SessionPath& session_path, const storage::Manifest& manifest,
                uint64_t unix_ns) const;

  storage::Fs& fs_;
  const std::string root_;
  const bool packed_;
  uint64_t round_ = 0;
  std::map<std::string, Seen> seen_;
};

}  // namespace collect::ctl
