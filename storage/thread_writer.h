// One thread of a session: its two files, its gaps, its positions.
//
// Owned by the SessionWriter, used on the storage thread. Invariant, per lane: what the agent
// numbered below position() is stored, or counted as lost with a number; and recorded = stored +
// lost, where recorded is position() + dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/function_set.h"
#include "storage/gap_list.h"
#include "storage/lane_file.h"
#include "storage/stall_list.h"
#include "storage/stream_journal.h"

namespace collect::storage {

class ThreadWriter {
 public:
  // Makes the directory and an index file without events.
  static Result<std::unique_ptr<ThreadWriter>> create(Fs& fs, Durability durability,
                                                      const std::string& directory,
                                                      const ThreadFormat& format,
                                                      const StreamIdentity& identity);
  // Opens what is there, cut back to whole records. Without a format, the index header gives it.
  // `sealing`: its sealing was begun, so that links may be half replaced.
  static Result<std::unique_ptr<ThreadWriter>> reopen(Fs& fs, Durability durability,
                                                      const std::string& directory,
                                                      std::optional<ThreadFormat> format,
                                                      bool sealing);

  // Pages of one lane, as SessionWriter::append_pages says.
  Status append(std::span<const Page> pages);
  // What the agent numbered and dropped up to the stream's end, or up to the last manifest: what is
  // missing from that is counted as lost for `reason`. kDamaged: no such numbers.
  Status expect(Lane lane, uint64_t numbered, uint64_t dropped, uint32_t reason, uint64_t at_ns);

  // Repeats are taken silently. `most`: as StallList::add().
  Status add_stalls(std::span<const Stall> stalls, size_t most);
  // From a manifest, where the journal does not have it.
  void adopt_stall(const Stall& stall, size_t most);

  Status commit();  // makes what is stored survive, as the durability says
  // The same but for the names of new files: needs no further descriptor. Before close_files().
  Status sync_files();
  void close_files();
  size_t open_files() const;

  // Links, footers, headers. Can be called again after an error.
  Status seal();
  Status remove_journal();
  // The ids of all functions in the index file.
  Status collect_functions(FunctionSet& functions);

  const ThreadFormat& format() const { return format_; }
  const std::string& directory() const { return directory_; }
  // As the stream journal says; null when it could not be read.
  const StreamIdentity* identity() const { return journal_.identity().get(); }
  bool has_detail() const { return detail_.exists(); }
  bool sealed() const { return index_.sealed(); }
  bool detail_was_sealed() const { return detail_.sealed(); }
  uint64_t cut_bytes() const { return index_.cut_bytes() + detail_.cut_bytes(); }
  const LaneSummary& summary(Lane lane) const { return file(lane).summary(); }
  uint64_t position(Lane lane) const {
    return summary(lane).records + numbered_lost_[static_cast<size_t>(lane)];
  }
  uint64_t dropped(Lane lane) const { return dropped_[static_cast<size_t>(lane)]; }
  uint64_t lost(Lane lane) const {
    return numbered_lost_[static_cast<size_t>(lane)] + dropped(lane);
  }
  const GapList& gaps(Lane lane) const { return gaps_[static_cast<size_t>(lane)]; }
  const StallList& stalls() const { return stalls_; }

 private:
  // Pages of one lane that lie behind one another, to be written together.
  struct Run {
    Lane lane;
    std::vector<Bytes> parts;
    LaneSummary after;
  };

  ThreadWriter(Fs& fs, Durability durability, std::string directory, const ThreadFormat& format);
  Status take(const Page& page, Run& run);
  Status check_page(const Page& page) const;
  Status flush(Run& run);
  Status begin_detail();
  Status sync_names();
  Status seal_detail(bool durable, Status& synced);
  Status put_gap(const Gap& gap);
  void count_gap(const Gap& gap);
  Status restore_journal();
  LaneFile& file(Lane lane) { return lane == Lane::kIndex ? index_ : detail_; }
  const LaneFile& file(Lane lane) const { return lane == Lane::kIndex ? index_ : detail_; }

  // Constant after construction.
  Fs& fs_;
  const Durability durability_;
  const std::string directory_;
  const ThreadFormat format_;

  LaneFile index_;
  LaneFile detail_;
  StreamJournal journal_;
  GapList gaps_[2];
  StallList stalls_;
  Gap newest_[2];  // as the journal has them
  uint64_t numbered_lost_[2] = {};
  uint64_t dropped_[2] = {};  // lost without a number: the agent's lost_total
  bool directory_unsynced_ = true;
};

}  // namespace collect::storage
