// A temporary file without a name: it goes away with its descriptor, also when Ctrl-C ends the
// program. For one writer, then for one reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/byte_sink.h"
#include "storage/fs/rooted_directory.h"
#include "storage/read/file_bytes.h"

namespace collect::read {

std::string temporary_directory();  // TMPDIR, else /tmp

// For reading and writing. kNoSpace, kPermission, kIo: the directory, which is named.
Result<Descriptor> open_unnamed(const std::string& directory);

class UnnamedFile final : public ByteSink {
 public:
  // kNoSpace, kPermission, kIo: the directory, which is named.
  static Result<UnnamedFile> create(const std::string& directory);
  UnnamedFile(UnnamedFile&& other) noexcept;
  UnnamedFile& operator=(UnnamedFile&&) = delete;

  Status write(Bytes bytes) override;
  // What was written.
  Result<FileBytes> bytes();
  // What was written is on the disk.
  Status sync();
  // What the file system has left for us.
  Result<uint64_t> free_bytes() const;

 private:
  UnnamedFile(Descriptor fd, std::string directory)
      : fd_(std::move(fd)), directory_(std::move(directory)) {}
  Status drain();

  Descriptor fd_;
  std::string directory_;
  std::vector<uint8_t> buffer_;
};

}  // namespace collect::read
