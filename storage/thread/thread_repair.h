// Takes damaged records out of the files of a thread that is opened again, so that what is behind
// them stays. STORAGE.md "Recovery".
//
// The records that are whole are copied to a new file, and the journal to a new one that has a gap
// (damaged, with numbers) where others were: the agent's numbers of what follows stay what they
// were. The journal's rename decides: its first slot says that the new file of the thread takes the
// old one's place. Before it, nothing has happened; behind it, finish() ends what was begun. So a
// repair can be interrupted anywhere.
//
// Needs as much free space as the file takes: kNoSpace leaves everything as it was.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>

#include "formats/core/result.h"
#include "storage/manifest/manifest.h"
#include "storage/thread/damage_scan.h"
#include "storage/thread/lane_file.h"

namespace collect::storage {

struct RepairedLane {
  uint64_t removed = 0;    // records that were damaged, with others behind them
  uint64_t cut_bytes = 0;  // behind the last record that stays
};

class ThreadRepair {
 public:
  ThreadRepair(Fs& fs, bool durable, const std::string& directory, const ThreadFormat& format)
      : fs_(fs), durable_(durable), directory_(directory), format_(format) {}

  // Ends an interrupted repair, and removes what else an interrupted writer left.
  Status finish();

  // `file` was opened again, and is damaged. Afterwards its summary is that of all records that
  // stay, up to the end; what else there is, is for end_reopen() to cut off.
  Result<RepairedLane> take_out_damaged(LaneFile& file, Lane lane, LaneFile::Links links);

  // Puts into the journal what a manifest has and a damaged, cut or missing one lacks. What came
  // after that manifest is not known.
  Status restore_gaps(std::span<const Gap> known);

  // For the detail file: uses the index file, whose links say which record is which.
  void use_links_of(LaneFile& index) { index_ = &index; }

 private:
  Status take_out(LaneFile& file, Lane lane, OrderBy order, LaneFile::Links links,
                  RepairedLane& repaired);
  Status commit();
  std::string path_of(const char* name) const { return fmt::format("{}/{}", directory_, name); }

  Fs& fs_;
  const bool durable_;
  const std::string directory_;
  const ThreadFormat format_;
  LaneFile* index_ = nullptr;
};

}  // namespace collect::storage
