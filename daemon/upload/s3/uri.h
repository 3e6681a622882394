// Percent-encoding as Signature Version 4 wants it. libcurl's and other encoders differ in what
// they leave raw, and a server that compares signatures notices. No state; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/upload/s3/http_message.h"

namespace collect::upload {

// All but A–Z, a–z, 0–9, '-', '.', '_' and '~' becomes %XX.
std::string encode_uri(std::string_view text);
// encode_uri(), but '/' stays: for the keys of objects.
std::string encode_path(std::string_view path);
// "a=1&b=": encoded, sorted by encoded name and value.
std::string canonical_query(const QueryFields& query);
// absent: a '%' without two hexadecimal digits behind it.
std::optional<std::string> decode_uri(std::string_view text);

}  // namespace collect::upload
