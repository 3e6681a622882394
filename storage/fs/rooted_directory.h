// One directory by its descriptor, and what is below it. The directory is the user's own word (a
// root, a PATH argument) and may be reached through links; below it no link is followed, at no
// component, and ".." does not exist. So a session that someone else packed, or who may write
// into it, cannot lead us to another file, whenever it changes. Files are regular files: opening
// waits for no named pipe and touches no device. STORAGE.md "Files".
//
// Thread-safe after open(). One descriptor each.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/descriptor.h"

namespace collect::storage {

enum class FileUse : uint8_t {
  kRead,
  // Must exist, and have no second name: through a hard link we would write into a file that is
  // someone else's, or a backup's.
  kWrite,
  kCreate,         // must not exist; read and write
  kCreatePrivate,  // the same; no one but its owner may open it
  kAppend,         // made where it is missing; read too; no second name
  kLock,           // made where it is missing; nothing is read or written
};

// How the way below the directory is walked.
enum class Lookup : uint8_t {
  kKernel,         // openat2, where the kernel has it, else as below
  kEachComponent,  // one openat with O_NOFOLLOW for each: other systems, and tests of it
};

class RootedDirectory {
 public:
  static Result<RootedDirectory> open(const std::string& path, Lookup lookup = Lookup::kKernel);

  const std::string& path() const { return path_; }
  std::string path_of(std::string_view below) const;  // for messages

  // `below` is relative: "thread_0/index.atf"; empty means the directory itself where a directory
  // is wanted. kPermission, with the path: a link on the way or at its end, no regular file, a
  // second name where we would write. kInvalidArgument: "..", "." or an empty component.
  Result<Descriptor> open_file(std::string_view below, FileUse use) const;
  Result<std::vector<std::string>> list(std::string_view below) const;  // sorted
  // For a link, what the link itself is.
  Result<struct stat> look_at(std::string_view below) const;
  Status make_directory(std::string_view below) const;
  Status rename(std::string_view from, std::string_view to) const;  // replaces `to`
  Status remove_file(std::string_view below) const;
  Status remove_directory(std::string_view below) const;
  Status sync(std::string_view below) const;  // of a directory: its names
  Result<struct statvfs> file_system(std::string_view below) const;

 private:
  struct Entry;  // a name within an open directory

  RootedDirectory(std::string path, Descriptor fd, Lookup lookup)
      : path_(std::move(path)), fd_(std::move(fd)), lookup_(lookup) {}
  Result<Entry> entry(std::string_view below) const;
  Result<Descriptor> descend(std::string_view below, int flags, const std::string& shown) const;
  Result<Descriptor> open_directory(std::string_view below, int flags) const;
  mode_t file_mode() const;

  std::string path_;
  Descriptor fd_;
  Lookup lookup_;
};

// A file that the user named: it may be reached through links, and be one. kInvalidArgument where
// it is no regular file.
Result<Descriptor> open_named_file(const std::string& path);

}  // namespace collect::storage
