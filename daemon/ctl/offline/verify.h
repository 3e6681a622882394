// `collectctl verify PATH`: every check there is, on files, links and the manifest.
#pragma once

#include <iosfwd>
#include <string>

namespace collect::ctl {

struct VerifyOptions {
  std::string path;     // session, thread or file; or a directory above sessions
  bool json = false;    // one document
  bool strict = false;  // warnings and notes count as findings too
  // A session or file that is not complete passes, if what is there holds.
  bool allow_incomplete = false;
  bool color = false;
  bool progress = false;
};

// 0: one line "ok: …", after warnings if there are any. 1: one line per finding, "path: offset N:
// sentence", among them what is missing from a session that is not complete. 2: the path itself
// cannot be read.
int verify(const VerifyOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
