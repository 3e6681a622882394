// A session back from its segments: what a part has that nobody committed. UPLOAD.md "Segments".
//
// Used on the caller's thread, which waits for the server.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/upload/retry.h"
#include "daemon/upload/s3_client.h"
#include "storage/fs.h"

namespace collect::upload {

struct RebuiltSession {
  std::string directory{};
  uint64_t segments = 0;
  uint64_t bytes = 0;  // of these
};

// Into `<root>/<session>`, the directory that it had, which must not be there: kAlreadyExists. The
// files are those that the collector had when it gave its last ack, or a moment later, as after
// kill -9: not sealed, unless it was sealed. kNotFound: no request's segments are whole; kDamaged:
// one is missing or is none; kNoSpace: its files would be larger than what the disk has free.
Result<RebuiltSession> rebuild_session(S3Client& client, Retries& retries,
                                       const std::string& prefix, storage::Fs& fs,
                                       const std::string& root);

}  // namespace collect::upload
