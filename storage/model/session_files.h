// The files of a session from outside: which there are, and all of them gone.
// packed_lanes.h opens one of them.
// Used to list, send and delete sessions; a session's writer does not use it. Any thread; may block
// on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

struct SessionFileInfo {
  std::string path;  // within the session: "thread_0/index.atf"
  uint64_t bytes = 0;
};

// What a session may consist of: manifest, containers, streams, thread files, journals. Names that
// are not ours, the reserve, the resume key and temporary files are left out. In the order of their
// paths, threads by number. A session that is being written changes meanwhile: what went is left
// out, and so is what open_session_file() would refuse.
Result<std::vector<SessionFileInfo>> list_session_files(Fs& fs, const SessionPath& session_path);

// What a maker of index.lod left in a session's threads that was killed. No one may be making one.
void remove_half_made_lods(Fs& fs, const std::string& directory);

// Whether a session may have a file of this path; not whether it is there.
bool is_session_path(std::string_view path);

struct RemovedFiles {
  uint32_t files = 0;
  uint64_t bytes = 0;
};

// Removes a sealed session: its files, the manifest last, then its directories. An interrupted
// removal is finished by another. A link in place of a file is removed, what it names is not.
// What has a name that is not ours, or is a link in place of a directory, stays with its
// directory and is named in the error (kAlreadyExists).
Result<RemovedFiles> remove_session(Fs& fs, const SessionPath& session_path);

}  // namespace collect::storage
