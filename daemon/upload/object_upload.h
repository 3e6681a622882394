// One file of a session becomes one object: with one PUT, or in parts. What an interrupted try has
// brought there is found by the checksums that the server lists, and not sent again.
//
// Memory: one buffer of UploadSizes::multipart_bytes, of which only what an object needs is
// touched. Used on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/upload/commit.h"
#include "daemon/upload/object_source.h"
#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"
#include "storage/fs/clock.h"
#include "storage/fs/fs.h"

namespace collect::upload {

inline constexpr uint64_t kPlannedParts = 9000;  // fewer than kMaxParts, should zstd make it longer

struct UploadSizes {
  uint64_t multipart_bytes = 64u << 20;  // objects from this size on go in parts
  // A larger file has larger ones, up to multipart_bytes. AWS takes none of less than 5 MiB.
  uint64_t part_bytes = 16u << 20;
};

// For one key; that many are checked.
inline constexpr size_t kMaxOpenUploads = 4;

// What is in the bucket below a part's prefix, from an earlier try.
struct FoundObjects {
  std::map<std::string, ObjectInfo> objects{};                // by key
  std::map<std::string, std::vector<std::string>> uploads{};  // key -> ids of those that are open
};

// Everything that sends: how, and what came of it so far.
struct SendingTo {
  S3Client& client;
  Retries& retries;
  Pauses& pauses;
  storage::Clock& clock;
  uint64_t max_bytes_per_s = 0;
  std::function<void(uint64_t bytes)> sent = [](uint64_t) {};
};

class ObjectUpload {
 public:
  ObjectUpload(const UploadSizes& sizes, SendingTo to);

  // kLimit: larger than kPlannedParts × multipart_bytes; kUnavailable: a server that lost the
  // upload: begin again. Else what the file system or S3Client says.
  Result<CommittedFile> upload(storage::Fs& fs, const std::string& directory,
                               const std::string& path, const std::string& prefix,
                               const FoundObjects& found);

  bool goes_in_parts(uint64_t object_bytes) const { return object_bytes >= sizes_.multipart_bytes; }

 private:
  // What the object consists of, as it is worked out while its bytes pass.
  struct Measured {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;
    std::vector<PartInfo> parts{};   // empty: it is sent with one PUT
    std::vector<uint8_t> digests{};  // of the parts, one after another

    std::string etag{};  // as S3 makes it
  };
  using SendPart = std::function<Status(PartInfo&, Bytes)>;

  Result<Measured> send_in_parts(ObjectSource& source, size_t filled, uint64_t part_bytes,
                                 const SendPart& send);
  Result<uint64_t> part_bytes_of(storage::Fs& fs, const std::string& path) const;
  Result<Measured> send_whole(const std::string& key, Bytes body, const ObjectInfo* present,
                              const std::string& type);
  Result<Measured> send_multipart(ObjectSource& source, size_t filled, uint64_t part_bytes,
                                  const std::string& key, const std::string& type,
                                  const FoundObjects& found);
  static Error lost_upload(const Error& error);
  // The one of a key that has most parts; its id is empty when there is none.
  struct OpenParts {
    std::string id{};
    std::map<uint32_t, PartInfo> parts{};
  };
  Result<OpenParts> best_open(const std::string& key, const FoundObjects& found);
  Result<std::map<uint32_t, PartInfo>> parts_there(const std::string& key, const std::string& id);
  Status complete(const std::string& key, const std::string& id, const Measured& object);
  Status keep_pace(uint64_t bytes, uint64_t began_ns);

  const UploadSizes sizes_;
  const SendingTo to_;
  const std::unique_ptr<uint8_t[]> buffer_;
};

}  // namespace collect::upload
