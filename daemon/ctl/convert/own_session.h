// A stored session that is to be changed where it is: its root, held so that no one can put another
// directory in its place, and locked, so that no collector uses it meanwhile.
#pragma once

#include <memory>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/posix_fs.h"
#include "storage/model/session_layout.h"

namespace collect::ctl {

struct OwnSession {
  storage::SessionPath session_path;
  std::unique_ptr<storage::PosixFs> files;
  std::unique_ptr<storage::RootLock> lock;
};

// `directory` is a pid directory. `doing` is said of one with another name: "recover".
// kUnavailable: a collector uses the root.
Result<OwnSession> own_session(const std::string& directory, const std::string& doing);

}  // namespace collect::ctl
