// Names of the functions that addresses of a traced process are in, as its registers and stack
// have them: looked up in the modules of its manifest, as functions are (daemon/symbolize).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/symbolize/symbolizer.h"
#include "formats/core/result.h"
#include "storage/read/session_files.h"

namespace collect::ctl {

// By address, `function+0x10`, or `libfoo.so+0x1230` where the file has no name for it. An address
// in no module has none; nor has any of a session that has no manifest of ours.
std::map<uint64_t, std::string> names_of_addresses(const read::Trace& trace,
                                                   const std::vector<uint64_t>& addresses,
                                                   const symbolize::SymbolizerOptions& options,
                                                   std::chrono::milliseconds most_time);

}  // namespace collect::ctl
