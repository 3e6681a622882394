// `collectctl sessions DIR`: the sessions below a directory, without a collector. Of each, its
// manifest alone is read, so that thousands of them take seconds.
#pragma once

#include <iosfwd>
#include <string>

#include "collect/control/v1/control.pb.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {

struct StoredSessionsOptions {
  std::string directory;
  bool json = false;      // as `sessions --json` of a collector
  bool progress = false;  // on the error stream
  size_t columns = 0;     // of the terminal; 0: the output stream is none
};

// 0: listed; 1: a manifest could not be read (the session is listed all the same), or not every
// directory was searched; 2: the directory cannot be read, or no session is below it.
int list_stored_sessions(const StoredSessionsOptions& options, std::ostream& out,
                         std::ostream& err);

// What the manifest says, as a collector would say it: without name, path and agent.
control::v1::Session session_of(const storage::Manifest& manifest);

}  // namespace collect::ctl
