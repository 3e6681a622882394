// Answers a request from files that are open. Runs in collect-symbolizer, on untrusted bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/symbolize/lookup/module_files.h"
#include "daemon/symbolize/protocol.h"
#include "formats/core/result.h"

namespace collect::symbolize {

// What a peer may learn of a module whose names were not found: the same for a file that is not
// there, not allowed, not readable, no ELF file, or another program's.
inline constexpr char kNoFile[] = "no file with this build id that may be read";
inline constexpr char kNoFileOfThisSize[] =
    "no build id, and no file of this size at its path that may be read";

using SendFrame = std::function<Status(FrameKind, Bytes)>;

// `missing` goes into the source frame. An error is that of `send`.
Status look_up(const LookupRequest& request, std::vector<ModuleFile> files,
               const std::string& missing, const SendFrame& send);

}  // namespace collect::symbolize
