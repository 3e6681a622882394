// The file system as a parameter, so that tests can fill it, break it and forget what was not
// synced. posix_fs.h gives the real one. Thread-safe; File objects are not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::storage {

class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  virtual Result<uint64_t> size() = 0;
  // All or an error; after an error the range may hold any part of the bytes.
  virtual Status write_at(uint64_t offset, std::span<const Bytes> parts) = 0;
  // Reads up to out.size() bytes; fewer only at the end of the file.
  virtual Result<size_t> read_at(uint64_t offset, MutableBytes out) = 0;
  virtual Status truncate(uint64_t bytes) = 0;
  // These bytes, behind the end, will be written soon: the system may find blocks for all of them
  // at once, which is cheaper. The size stays as it is, and truncate() gives the blocks back, also
  // to the size that the file has. A hint: nothing is done where it is no gain, or space is short.
  virtual void set_aside(uint64_t offset, uint64_t bytes) { (void)offset, (void)bytes; }
  virtual Status sync() = 0;  // data and what is needed to read it back
};

enum class OpenMode : uint8_t {
  kCreate,         // must not exist; read and write
  kCreatePrivate,  // the same; no one but its owner may open it
  kReadWrite,      // must exist
  kRead,
};

// An exclusive lock, held until this object goes; the end of the process releases it too.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether the path still names the file that is locked: it may have been moved or removed.
  virtual bool holds(const std::string& path) const = 0;
};

inline constexpr uint64_t kUncountedFiles = UINT64_MAX;

struct SpaceInfo {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  // That can still be made; kUncountedFiles: the file system has no such number.
  uint64_t free_files = kUncountedFiles;
};

class Fs {
 public:
  virtual ~Fs() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  // Every level that is missing; the parent of each that was made is synced, so that the path
  // survives the power as soon as this returns.
  virtual Status make_directories(const std::string& path);
  virtual Status make_directory(const std::string& path) = 0;  // kAlreadyExists when it is there
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove_file(const std::string& path) = 0;
  virtual Status remove_directory(const std::string& path) = 0;  // must be empty
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list_directory(
      const std::string& path) = 0;  // sorted, without "." and ".."
  virtual bool exists(const std::string& path) = 0;
  virtual Result<SpaceInfo> space(const std::string& path) = 0;
  // Makes the file when it is missing. kUnavailable while another holder, here or in another
  // process, has it.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
};

}  // namespace collect::storage
