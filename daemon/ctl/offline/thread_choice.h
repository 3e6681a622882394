// `--thread` of the commands for files: which threads of a session are meant
// (storage/thread_pattern.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/trace/session_files.h"
#include "storage/trace/session_manifest.h"

namespace collect::ctl {

// N of thread_N of each; empty for no words, which means all. kInvalidArgument: a word that names
// no thread; kNotFound: none of this session is meant, and the message lists them.
Result<std::vector<uint32_t>> chosen_threads(const std::vector<std::string>& words,
                                             const trace::Trace& trace,
                                             const trace::SessionManifest& manifest);

}  // namespace collect::ctl
