#include "storage/thread/thread_repair.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/atf/writer.h"
#include "storage/model/thread_leftovers.h"
#include "storage/thread/position_map.h"
#include "storage/thread/stream_journal.h"

namespace collect::storage {
namespace {

// Limit for a damaged journal; entries beyond it count as damaged too.
constexpr uint64_t kMaxRestoredEntries = 1u << 20;

struct LaneNames {
  Lane lane;
  const char* file;
  const char* temporary;
};
constexpr LaneNames kLanes[] = {{Lane::kIndex, kIndexFile, kIndexTemporaryFile},
                                {Lane::kDetail, kDetailFile, kDetailTemporaryFile}};

const LaneNames& names_of(Lane lane) {
  return kLanes[static_cast<size_t>(lane)];
}

// The journal of a thread without the damaged records of one lane: its gaps, and theirs.
class JournalCopy {
 public:
  JournalCopy(StreamJournal& old, StreamJournal& made, Lane lane)
      : old_(old), made_(made), lane_(lane) {}

  // In order. `first` counts the records that were found.
  Status damaged(uint64_t first, uint64_t records) {
    COLLECT_TRY(pass_gaps(first));
    Gap gap;
    gap.lane = lane_;
    gap.reasons = kLostDamaged;
    gap.before_seq = first - removed_;
    gap.lost = records;
    gap.numbered_lost = records;
    COLLECT_TRY(put(gap));
    removed_ += records;
    next_kept_ = first + records;
    return {};
  }

  // `end`: behind the last record that stays. Then everything that is not a gap of this lane.
  Status finish(uint64_t end) {
    COLLECT_TRY(pass_gaps(end));
    if (pending_) COLLECT_TRY(made_.put(*pending_, false));
    for (uint64_t number = 0;; ++number) {
      Gap gap;
      std::optional<Stall> stall;
      const auto there = old_.read(number, gap, &stall);
      if (!there.ok()) return there.error();
      if (!*there) return {};
      if (stall) COLLECT_TRY(made_.put(*stall));
      if (gap.lost != 0 && gap.lane != lane_) COLLECT_TRY(made_.put(gap, false));
    }
  }

  uint64_t removed() const { return removed_; }

 private:
  // Those of the lane before a record up to `position`.
  Status pass_gaps(uint64_t position) {
    while (true) {
      if (!waiting_) {
        Gap gap;
        const auto there = old_.read(number_, gap);
        if (!there.ok()) return there.error();
        if (!*there) return {};
        ++number_;
        if (gap.lost == 0 || gap.lane != lane_) continue;
        waiting_ = gap;
      }
      if (waiting_->before_seq > position) return {};
      Gap moved = *std::exchange(waiting_, std::nullopt);
      moved.before_seq = std::max(moved.before_seq, next_kept_) - removed_;
      COLLECT_TRY(put(moved));
    }
  }
  // One entry for all that is missing before one record.
  Status put(const Gap& gap) {
    if (pending_ && pending_->before_seq == gap.before_seq) {
      pending_->lost += gap.lost;
      pending_->numbered_lost += gap.numbered_lost;
      pending_->reasons |= gap.reasons;
      if (pending_->first_ns == 0) pending_->first_ns = gap.first_ns;
      pending_->last_ns = std::max(pending_->last_ns, gap.last_ns);
      return {};
    }
    if (pending_) COLLECT_TRY(made_.put(*pending_, false));
    pending_ = gap;
    return {};
  }

  StreamJournal& old_;
  StreamJournal& made_;
  const Lane lane_;
  uint64_t number_ = 0;  // of the next entry of the old one
  std::optional<Gap> waiting_;
  std::optional<Gap> pending_;
  uint64_t removed_ = 0;
  uint64_t next_kept_ = 0;
};

// The link of an event, as the position of its record in the detail file.
class LinkedPositions {
 public:
  LinkedPositions(Fs& fs, const std::string& directory, const ThreadFormat& format, LaneFile& index)
      : journal_(fs, directory, kStreamJournalFile), format_(format), index_(index) {}

  Result<std::optional<uint64_t>> operator()(uint64_t index_seq) {
    const auto event = position(Lane::kIndex, index_seq);
    if (!event.ok()) return event.error();
    if (*event >= index_.found_bytes() / atf::kEventBytes) return std::optional<uint64_t>();
    const auto file = index_.open_again();
    if (!file.ok()) return file.error();
    uint8_t bytes[atf::kEventBytes];
    const auto got = (*file)->read_at(atf::kEventsOffset + *event * atf::kEventBytes, bytes);
    if (!got.ok()) return got.error();
    if (!holds_alone(format_.records(), Lane::kIndex, Bytes(bytes).first(*got))) {
      return std::optional<uint64_t>();
    }
    const bool v1 = format_.version == atf::Version::kV1;
    const uint64_t number = v1 ? load_le<uint32_t>(bytes + offsetof(atf::IndexEventV1, detail_seq))
                               : load_le<uint64_t>(bytes + offsetof(atf::IndexEventV2, detail_seq));
    if (number == (v1 ? atf::kNoDetailV1 : atf::kNoDetail)) return std::optional<uint64_t>();
    const auto record = position(Lane::kDetail, number);
    if (!record.ok()) return record.error();
    return *record == kLost ? std::nullopt : std::optional(*record);
  }

 private:
  Result<uint64_t> position(Lane lane, uint64_t seq) {
    PositionMap map(journal_, lane, UINT64_MAX);
    const auto place = map.place(seq);
    if (!place.ok()) return place.error();
    return place->position;
  }

  StreamJournal journal_;
  const ThreadFormat format_;
  LaneFile& index_;
};

// The records of a run, at the end of `to`. The checksum is the reader's to compute.
Status copy_run(File& from, const RecordRun& run, LaneFile& to, LaneSummary& after) {
  std::vector<uint8_t> block(static_cast<size_t>(std::min<uint64_t>(kScanBlockBytes, run.bytes)));
  for (uint64_t done = 0; done < run.bytes;) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(block.size(), run.bytes - done));
    const auto got =
        from.read_at(atf::kEventsOffset + run.offset + done, MutableBytes(block).first(want));
    if (!got.ok()) return got.error();
    if (*got == 0) return Error{Code::kTruncated, from.path() + ": shorter than it was"};
    after.bytes += *got;
    const Bytes parts[] = {Bytes(block).first(*got)};
    COLLECT_TRY(to.append(parts, after));
    done += *got;
  }
  return {};
}

}  // namespace

Status ThreadRepair::finish() {
  StreamJournal journal(fs_, directory_, kStreamJournalFile);
  const auto replacing = journal.is_replacing();
  if (!replacing.ok()) return replacing.error();
  if (*replacing) {
    for (const LaneNames& names : kLanes) {
      if (!fs_.exists(path_of(names.temporary))) continue;
      COLLECT_TRY(fs_.rename(path_of(names.temporary), path_of(names.file)));
    }
    if (durable_) COLLECT_TRY(fs_.sync_directory(directory_));
    COLLECT_TRY(journal.end_replacing());
    if (durable_) COLLECT_TRY(journal.sync());
  }
  for (const char* name : kThreadTemporaryFiles) {
    if (fs_.exists(path_of(name))) COLLECT_TRY(fs_.remove_file(path_of(name)));
  }
  return {};
}

Result<RepairedLane> ThreadRepair::take_out_damaged(LaneFile& file, Lane lane,
                                                    LaneFile::Links links) {
  RepairedLane repaired;
  for (const OrderBy order : {OrderBy::kLink, OrderBy::kTime}) {
    if (lane == Lane::kIndex && order == OrderBy::kLink) continue;
    if (!file.is_damaged()) break;
    const Status taken = take_out(file, lane, order, links, repaired);
    if (!taken.ok()) {
      (void)finish();  // gives the blocks back
      return taken.error();
    }
  }
  return repaired;
}

Status ThreadRepair::take_out(LaneFile& file, Lane lane, OrderBy order, LaneFile::Links links,
                              RepairedLane& repaired) {
  const auto opened = file.open_again();
  if (!opened.ok()) return opened.error();
  DamagedSection section{**opened, atf::kEventsOffset, file.found_bytes(), lane, format_.records()};
  std::optional<LinkedPositions> linked;
  if (lane == Lane::kDetail && index_ != nullptr && !index_->sealed()) {
    linked.emplace(fs_, directory_, format_, *index_);
    section.position_by_link = [&linked](uint64_t index_seq) { return (*linked)(index_seq); };
  }
  const auto is_more = has_records_behind(section, file.summary().bytes);
  if (!is_more.ok()) return is_more.error();
  if (!*is_more) return {};
  StreamJournal old(fs_, directory_, kStreamJournalFile);
  StreamJournal made(fs_, directory_, kStreamJournalTemporaryFile);
  LaneFile copy(fs_, path_of(names_of(lane).temporary), lane, format_);
  JournalCopy gaps(old, made, lane);
  LaneSummary after;
  RecordRun last;  // that stays
  const auto begin_copy = [&]() -> Status {
    COLLECT_TRY(old.reopen([](const Gap&) { return true; }));
    COLLECT_TRY(made.create_replacing(old.identity().get()));
    COLLECT_TRY(copy.create(file.header_has_detail()));
    return last.records == 0 ? Status() : copy_run(**opened, last, copy, after);
  };
  const Status found = find_kept_records(section, order, [&](const RecordRun& run) -> Status {
    const uint64_t end = last.first + last.records;
    if (run.first != end || run.offset != last.offset + last.bytes) {
      if (!copy.exists()) COLLECT_TRY(begin_copy());
      COLLECT_TRY(gaps.damaged(end, run.first - end));
    }
    last = run;
    return copy.exists() ? copy_run(**opened, run, copy, after) : Status();
  });
  COLLECT_TRY(found);
  const uint64_t kept_bytes = last.offset + last.bytes;
  if (!copy.exists()) {
    // Nothing is damaged but what is behind these, or links between events and details alone.
    COLLECT_TRY(file.rescan(kept_bytes, links));
    if (file.summary().bytes == kept_bytes || lane == Lane::kDetail) return {};
    return file.rescan(kept_bytes, LaneFile::Links::kBeingReplaced);
  }
  COLLECT_TRY(gaps.finish(last.first + last.records));
  if (durable_) COLLECT_TRY(copy.sync());
  if (durable_) COLLECT_TRY(made.sync());
  COLLECT_TRY(commit());
  repaired.removed += gaps.removed();
  repaired.cut_bytes += section.bytes - kept_bytes;
  file.close();
  // Links are made again at the seal.
  return file.reopen(LaneFile::Links::kBeingReplaced);
}

Status ThreadRepair::commit() {
  if (durable_) COLLECT_TRY(fs_.sync_directory(directory_));
  COLLECT_TRY(fs_.rename(path_of(kStreamJournalTemporaryFile), path_of(kStreamJournalFile)));
  if (durable_) COLLECT_TRY(fs_.sync_directory(directory_));
  return finish();
}

Status ThreadRepair::restore_gaps(std::span<const Gap> known) {
  StreamJournal old(fs_, directory_, kStreamJournalFile);
  const auto was_replaced = old.was_replaced();
  if (!was_replaced.ok()) return was_replaced.error();
  if (*was_replaced) return {};
  std::map<std::pair<Lane, uint64_t>, Gap> gaps;
  uint64_t missing = 0;
  // Behind gaps that the manifest joins, it does not know the places.
  for (const Gap& gap : known) {
    if (gap.merged != 1 || !gap.has_place) continue;
    gaps[{gap.lane, gap.before_seq}] = gap;
    ++missing;
  }
  if (missing == 0) return {};
  std::vector<Stall> stalls;
  for (uint64_t number = 0; number < kMaxRestoredEntries; ++number) {
    Gap gap;
    std::optional<Stall> stall;
    const auto there = old.read(number, gap, &stall);
    if (!there.ok()) return there.error();
    if (!*there) break;
    if (stall) stalls.push_back(*stall);
    if (gap.lost == 0) continue;
    Gap& kept = gaps[{gap.lane, gap.before_seq}];
    if (gap.lost < kept.lost) continue;
    if (kept.lost != 0) --missing;
    kept = gap;
  }
  if (missing == 0) return {};
  COLLECT_TRY(old.read_identity());
  StreamJournal made(fs_, directory_, kStreamJournalTemporaryFile);
  COLLECT_TRY(made.create_replacing(old.identity().get()));
  COLLECT_TRY(made.end_replacing());
  for (const auto& [place, gap] : gaps) COLLECT_TRY(made.put(gap, false));
  for (const Stall& stall : stalls) COLLECT_TRY(made.put(stall));
  if (durable_) COLLECT_TRY(made.sync());
  return commit();
}

}  // namespace collect::storage
