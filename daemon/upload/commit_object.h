// Small objects, and COMMIT of a part among them, fetched. Used on the caller's thread, which waits
// for the server.
#pragma once

#include <string>

#include "daemon/upload/commit.h"
#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"

namespace collect::upload {

// An object as it is there. kLimit: it has more bytes; else the codes of S3Client.
Result<std::string> read_object_text(S3Client& client, Retries& retries, const std::string& key,
                                     size_t most_bytes);
// As it is there. kLimit: kMaxCommitBytes; else the codes of S3Client.
Result<std::string> read_commit_text(S3Client& client, Retries& retries, const std::string& prefix);
// kDamaged also where it is another part's.
Result<Commit> read_commit(S3Client& client, Retries& retries, const std::string& prefix);

// Whether an error of read_commit(), or of a part's download, is of that part alone: it is damaged,
// gone, of a later version, or no one may read it. The others are handled.
bool is_of_one_part(const Error& error);

}  // namespace collect::upload
