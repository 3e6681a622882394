// The directory in which a user's collectors and commands find each other:
// $XDG_RUNTIME_DIR/collectord, else /run/user/UID/collectord, else /tmp/collectord-UID. CTL.md
// "What runs, what is newest".
//
// No one else can have put anything there: the directory is this user's and has mode 0700, what is
// above it can be written by this user or root alone (or is sticky, as /tmp), and no link is
// followed. A file appears whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/rooted_directory.h"

namespace collect::runtime {

inline constexpr size_t kMaxEntryBytes = size_t{16} << 10;
inline constexpr size_t kMaxEntries = 256;  // files that are looked at

class RuntimeDirectory {
 public:
  // kNotFound: there is none yet. kPermission: what has its name may be another user's.
  static Result<RuntimeDirectory> open();
  // Makes it where it is missing.
  static Result<RuntimeDirectory> make();

  const std::string& path() const { return directory_.path(); }

  // The file `name` has this text from now on. It is locked until the descriptor is closed.
  Result<Descriptor> publish(const std::string& name, const std::string& text) const;
  // kLimit: it has more than kMaxEntryBytes.
  Result<std::string> read(const std::string& name) const;
  // Those whose name begins so, sorted; at most kMaxEntries.
  std::vector<std::string> names(const std::string& prefix) const;
  // True while the process that published the file, or one that it started with the descriptor,
  // lives. Unlike a process's number this holds in every PID namespace, and is never used again.
  bool is_locked(const std::string& name) const;
  // What processes that were killed while they wrote have left behind.
  void remove_half_made() const;
  Status remove(const std::string& name) const { return directory_.remove_file(name); }

 private:
  explicit RuntimeDirectory(storage::RootedDirectory directory)
      : directory_(std::move(directory)) {}
  Result<Descriptor> publish_once(const std::string& name, const std::string& text) const;

  storage::RootedDirectory directory_;
};

}  // namespace collect::runtime
