// `--thread` of the commands for files: which threads of a session are meant
// (storage/model/thread_pattern.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"

namespace collect::select {

// N of thread_N of each; empty for no words, which means all. kInvalidArgument: a word that names
// no thread; kNotFound: none of this session is meant, and the message lists them.
Result<std::vector<uint32_t>> chosen_threads(const std::vector<std::string>& words,
                                             const read::Trace& trace,
                                             const read::SessionManifest& manifest);

}  // namespace collect::select
