// What an S3 server's error means for the caller: UPLOAD.md "What is tried again". No state; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::upload {

struct S3Failure {
  std::string code{};     // "SlowDown"; empty: the body had none
  std::string message{};  // of the server, cut
};

// Reads an answer's body; an answer without XML, as HEAD has, gives an empty one.
S3Failure read_failure(std::string_view body);
// `status` 200: an error that came with it, in the body.
Code code_of(int status, std::string_view s3_code);

bool is_clock_failure(std::string_view s3_code);
bool is_expiry(std::string_view s3_code);

}  // namespace collect::upload
