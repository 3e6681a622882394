// The bytes of an object on their way back into a file: decompressed where they are compressed, and
// compared with what COMMIT says of both.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/upload/commit.h"
#include "formats/core/byte_sink.h"
#include "storage/model/untrusted_file.h"

namespace collect::upload {

class ObjectSink final : public ByteSink {
 public:
  // `file` is empty and has the size that COMMIT names as its bound; both outlive it.
  ObjectSink(const CommittedFile& wanted, storage::UntrustedFile& file);
  ~ObjectSink() override;

  // kDamaged: more than COMMIT says, or no zstd.
  Status write(Bytes bytes) override;
  // All has come. kDamaged: not what COMMIT says.
  Status finish();

  uint64_t object_bytes() const { return object_bytes_; }

 private:
  struct Decompressor;
  Status store(Bytes bytes);

  const CommittedFile& wanted_;
  storage::UntrustedFile& file_;
  const std::unique_ptr<Decompressor> decompressor_;  // null: as it is
  uint64_t object_bytes_ = 0;
  uint32_t object_crc32c_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace collect::upload
