// The secret by which an agent continues with its session. It is beside the session's files while
// the session is written, for its owner alone: STORAGE.md "Resume key".
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::storage {

struct ResumeKey {
  std::array<uint8_t, 16> bytes{};
  // The owner whose connections it is valid for: a word of the daemon's, "uid 1000". Empty: any.
  std::string owner;

  bool operator==(const ResumeKey&) const = default;
};

inline constexpr size_t kMaxResumeOwnerBytes = 256;

// A file with mode 0600, synced if `durable`. kAlreadyExists: the session has one.
Status write_resume_key(Fs& fs, const std::string& directory, const ResumeKey& key, bool durable);
// kNotFound: there is none. kDamaged: the daemon or the power went before it was whole.
Result<ResumeKey> read_resume_key(Fs& fs, const std::string& directory);
Status remove_resume_key(Fs& fs, const std::string& directory);  // nothing to do when there is none

}  // namespace collect::storage
