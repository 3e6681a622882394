// Parts in a bucket: which are committed, and one of them back on a disk, byte for byte.
//
// Used on the caller's thread, which waits for the server.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/commit.h"
#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"
#include "storage/fs/fs.h"

namespace collect::upload {

struct CommittedParts {
  std::vector<std::string> prefixes{};  // "v1/…/part=C-E/", in the order of the keys
  uint64_t unfinished = 0;              // parts that have objects and no COMMIT
};

inline constexpr size_t kMaxListedParts = 1'000'000;
inline constexpr uint64_t kMaxListedObjects = 100'000'000;

// Those whose keys begin so; empty: all. kLimit: kMaxListedParts, kMaxListedObjects.
Result<CommittedParts> list_committed_parts(S3Client& client, Retries& retries,
                                            const std::string& below = kKeyRoot);

// Into `<root>/<session>`, the directory that it had; `root` is there. Every file's size and
// checksum is compared with COMMIT before it gets its name, and manifest.json comes last. A file
// that is there already and agrees is kept, so an interrupted download continues; one that differs:
// kAlreadyExists. kDamaged: an object is not what COMMIT says. kNoSpace: COMMIT announces more than
// there is room for; nothing is begun. The path of the session's directory.
// With `wanted`, only the files whose paths it takes.
Result<std::string> download_part(S3Client& client, Retries& retries, const std::string& prefix,
                                  storage::Fs& fs, const std::string& root,
                                  const std::function<bool(std::string_view path)>& wanted = {});

}  // namespace collect::upload
