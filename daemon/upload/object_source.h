// The bytes of an object, made from a file of a session as they are asked for: as they are, or as
// one zstd frame. The same file gives the same bytes with the same zstd, however they are asked
// for.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::upload {

inline constexpr int kCompressionLevel = 1;
inline constexpr size_t kReadBytes = 256u << 10;  // of the file at a time

class ObjectSource {
 public:
  static Result<std::unique_ptr<ObjectSource>> open(storage::Fs& fs, const std::string& path,
                                                    bool compressed);
  ~ObjectSource();
  ObjectSource(const ObjectSource&) = delete;
  ObjectSource& operator=(const ObjectSource&) = delete;

  // Fills `out`; less only at the end.
  Result<size_t> read(MutableBytes out);

  // Size of the file, so far: all of it when read() has given less than was asked for.
  uint64_t file_bytes() const { return file_bytes_; }
  uint32_t file_crc32c() const { return file_crc32c_; }

 private:
  struct Compressor;
  ObjectSource(std::unique_ptr<storage::File> file, std::unique_ptr<Compressor> compressor);
  Result<size_t> read_file(MutableBytes out);
  Result<size_t> read_compressed(MutableBytes out);

  const std::unique_ptr<storage::File> file_;
  const std::unique_ptr<Compressor> compressor_;  // null: as it is
  uint64_t file_bytes_ = 0;
  uint32_t file_crc32c_ = 0;
};

}  // namespace collect::upload
