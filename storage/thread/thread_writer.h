// One thread of a session: its two files, its gaps, its positions.
//
// Owned by the Session, used on the storage thread. Invariant, per lane: what the agent
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
#include "storage/model/function_set.h"
#include "storage/thread/lane_file.h"
#include "storage/thread/losses.h"
#include "storage/thread/page_restore.h"
#include "storage/thread/stream_journal.h"

namespace collect::storage {

class ThreadWriter {
 public:
  // Makes the directory and an index file without events.
  static Result<std::unique_ptr<ThreadWriter>> create(Fs& fs, Durability durability,
                                                      const std::string& directory,
                                                      const ThreadFormat& format,
                                                      const StreamIdentity& identity);
  // Opens what is there. Without a format, the index header gives it. `sealing`: its sealing was
  // begun, so that links may be half replaced. `known_gaps`: of a manifest, where the journal does
  // not have them. Only restore_pages() and end_reopen() come next.
  static Result<std::unique_ptr<ThreadWriter>> reopen(Fs& fs, Durability durability,
                                                      const std::string& directory,
                                                      std::optional<ThreadFormat> format,
                                                      bool sealing,
                                                      std::span<const Gap> known_gaps);

  // Puts records of pages that were kept elsewhere where the files have others (page_restore.h).
  // Until end_reopen().
  std::unique_ptr<PageRestore> restore_pages();
  Status end_restore(PageRestore& restore) { return restore.finish(found_links_); }
  // Before end_reopen(): a manifest knew of more.
  bool is_shorter_than(const ManifestThread& known) const;
  Status read_identity() { return journal_.read_identity(); }
  // Records are damaged, or the end is torn.
  bool is_damaged() const { return index_.is_damaged() || detail_.is_damaged(); }
  // Takes damaged records out, and cuts the files back to whole ones. Damage behind so many records
  // of a lane cuts the file there: an agent is to send again what it had. kNoSpace: that needs as
  // much space as the damaged file.
  Status end_reopen(uint64_t events_kept, uint64_t detail_records_kept);
  // By end_reopen(): that were damaged, and are counted as lost now.
  uint64_t damaged_records() const { return damaged_records_; }
  bool had_damaged_journal() const { return had_damaged_journal_; }

  // Pages of one lane, as Session::append_pages says.
  Status append(std::span<const Page> pages);
  // What the agent numbered and dropped up to the stream's end, or up to the last manifest: what is
  // missing from that is counted as lost for `reason`. kDamaged: no such numbers.
  Status expect(Lane lane, uint64_t numbered, uint64_t dropped, uint32_t reason, uint64_t at_ns);

  // Repeats are taken silently. `most`: as StallList::add().
  Status add_stalls(std::span<const Stall> stalls, size_t most);
  // From a manifest, where the journal does not have it.
  void adopt_stall(const Stall& stall, size_t most);

  Status commit();  // makes what is stored survive, as the durability says
  // commit() but for the names of new files: needs no further descriptor. Before close_files().
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
  uint64_t cut_bytes() const {
    return index_.cut_bytes() + detail_.cut_bytes() + repair_cut_bytes_;
  }
  const LaneSummary& summary(Lane lane) const { return file(lane).summary(); }
  uint64_t position(Lane lane) const {
    return summary(lane).records + losses_[static_cast<size_t>(lane)].numbered;
  }
  uint64_t dropped(Lane lane) const { return dropped_[static_cast<size_t>(lane)]; }
  uint64_t lost(Lane lane) const {
    return losses_[static_cast<size_t>(lane)].numbered + dropped(lane);
  }
  const GapList& gaps(Lane lane) const { return losses_[static_cast<size_t>(lane)].gaps; }
  const StallList& stalls() const { return stalls_; }

 private:
  // Adjacent pages of one lane, to be written together.
  struct Run {
    Lane lane;
    std::vector<Bytes> parts;
    LaneSummary after;
  };

  ThreadWriter(Fs& fs, Durability durability, std::string directory, const ThreadFormat& format);
  Status take(const Page& page, Run& run);
  Status check_page(const Page& page) const;
  // Where events that were read back are later than the first page that comes behind them, they are
  // damaged: they are taken back.
  Status doubt_tail(const Page& page, LaneSummary& after);
  Status flush(Run& run);
  Status begin_detail();
  Status sync_names();
  Status seal_detail(bool durable, Status& synced);
  Status put_gap(const Gap& gap);
  void count_gap(const Gap& gap);
  Status repair(LaneFile& file, Lane lane, LaneFile::Links links, uint64_t records_kept);
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
  LaneLosses losses_[2];
  StallList stalls_;
  Gap newest_[2];             // as the journal has them
  uint64_t dropped_[2] = {};  // lost without a number: the agent's lost_total
  bool directory_unsynced_ = true;
  // State of a thread that is opened again.
  LaneFile::Links found_links_ = LaneFile::Links::kHold;
  bool is_tail_doubtful_ = false;  // no page has come behind what was read back
  uint64_t damaged_records_ = 0;
  bool had_damaged_journal_ = false;
  uint64_t repair_cut_bytes_ = 0;
};

}  // namespace collect::storage
