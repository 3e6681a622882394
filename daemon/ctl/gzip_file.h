// Captures are often kept packed: dial9 recorders upload .bin.gz. The readers here want bytes that
// stay where they are, so a gzip file is inflated once, into a file without a name that goes away
// with its descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::ctl {

// A gzip file may say a thousand times what it holds. What is larger than this when unpacked is
// refused; gzip -dc unpacks it where there is room for it.
inline constexpr uint64_t kMaxInflatedBytes = uint64_t{16} << 30;

bool looks_like_gzip(Bytes head);

// Reads the open gzip file `fd` from its beginning, all members of it, into an unlinked file of the
// temporary directory; the descriptor of that, which the caller closes. `path` is for messages.
// kTruncated: the data end early. kDamaged: a checksum, or bytes that are no gzip. kLimit: more
// than `max_bytes`. kNoSpace, kIo: the temporary directory.
Result<int> inflate_gzip(int fd, const std::string& path, uint64_t max_bytes = kMaxInflatedBytes);

}  // namespace collect::ctl
