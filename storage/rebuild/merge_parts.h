// The parts that several collectors stored of one recording (STORAGE.md "Parts") into one session:
// the thread files come out byte for byte as one collector would have stored them.
//
// Records of a thread are taken in the order of the agent's numbers, each once; what several parts
// have must be the same. What no part has shows as a gap. Used on one thread; reads and writes in
// blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/rebuild/made_session.h"
#include "storage/rebuild/session_rebuild.h"

namespace collect::storage {

// For one recording. More are refused.
inline constexpr size_t kMaxParts = 256;

struct SessionPart {
  Fs* fs = nullptr;  // reads below `directory`; borrowed
  std::string directory;
  Manifest manifest;
};

struct MergeReport {
  ReplayReport session;
  uint64_t repeated_events = 0;  // that a further part has too: compared, but for their links
};

// Below `options.root`, which `fs` writes; `progress` is asked as it is for other made sessions.
//   kInvalidArgument  no parts, too many, parts of several recordings, or a stream of another
//   format kUnsupported      a part is not sealed, or has another ATF version than the first one,
//   or so many
//                     gaps that its manifest joins them: its numbers are not known exactly then
//   kDamaged          two parts disagree about a record
Result<MergeReport> merge_parts(Fs& fs, const SessionOptions& options,
                                std::vector<SessionPart> parts, const MakingProgress& progress);

}  // namespace collect::storage
