// Keys in a file as the tools of AWS keep them, ~/.aws/credentials: sections of `name = value`.
// No state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "daemon/upload/s3/credentials.h"
#include "formats/core/result.h"

namespace collect::upload {

inline constexpr size_t kMaxCredentialFileBytes = 1u << 20;

// The credentials of one section. kPermission: it is not there, or lacks a key. `path` is for the
// sentence.
Result<Credentials> credentials_of_profile(std::string_view text, std::string_view profile,
                                           const std::string& path);

// Links are followed: Kubernetes mounts secrets as links. kPermission: it is not there or may not
// be read; kLimit: longer than `most_bytes`.
Result<std::string> read_secret_file(const std::string& path, size_t most_bytes);

}  // namespace collect::upload
