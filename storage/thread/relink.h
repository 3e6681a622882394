// Makes the links of a thread's two files agree, once, before they are sealed. STORAGE.md "Links".
//
// Records carry the agent's numbers. They equal file positions as long as nothing numbered was lost
// and no detail record came as pre-roll; then links_agree() holds and nothing is touched.
// Otherwise: index_seq of each detail record becomes the file position of its event, records whose
// event was lost are dropped and counted (those whose event another part of the session may have
// are in files of their own then), and detail_seq of each event becomes the position of its
// record.
//
// Memory is bounded by two scan blocks. A crash at any point leaves files from which the same pass
// gives the same result: the detail file is replaced as a whole, sealed, by a rename; only after
// that the index is patched in place, from what the detail file says alone.
#pragma once

#include <string>

#include "formats/core/result.h"
#include "storage/thread/lane_file.h"
#include "storage/thread/losses.h"
#include "storage/thread/stream_journal.h"

namespace collect::storage {

// Runs of records that are kept for another part; those of later ones are dropped and counted, as
// all were without it.
inline constexpr size_t kMaxUnlinkedFiles = 16;

// True when every forward link meets its backward link already.
bool links_agree(const LaneSummary& index, const LaneSummary& detail);

// The files of one thread.
struct RelinkFiles {
  Fs& fs;
  std::string directory;
  ThreadFormat format;
  LaneFile& index;
  LaneFile& detail;
  StreamJournal& journal;
  bool durable;
};

// Rebases the detail file and seals it; removes it when nothing of it is left. The gaps in `losses`
// move when records before them are dropped; those records are counted there, also when a later
// step fails. When there is no space for the new file, the records from the first one that would
// change on are dropped.
Status relink_detail(const RelinkFiles& files, LaneLosses& losses);

// Sets the forward links by the sealed detail file, or clears them without one.
Status relink_index(const RelinkFiles& files);

}  // namespace collect::storage
