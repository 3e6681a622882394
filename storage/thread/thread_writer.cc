#include "storage/thread/thread_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "formats/atf/headers.h"
#include "formats/atf/reader.h"
#include "formats/atf/writer.h"
#include "formats/core/crc32.h"
#include "storage/model/session_layout.h"
#include "storage/thread/relink.h"
#include "storage/thread/thread_repair.h"

namespace collect::storage {
namespace {

// So many of the last events are taken back where the page behind them is earlier.
constexpr uint64_t kMaxDoubtfulEvents = 65'536;

size_t lane_index(Lane lane) {
  return static_cast<size_t>(lane);
}

// How many of the first events are whole; in the format of another file, none.
uint64_t whole_events(Bytes events, const RecordFormat& format) {
  uint64_t whole = 0;
  for (size_t at = 0; at + atf::kEventBytes <= events.size(); at += atf::kEventBytes) {
    whole += holds_alone(format, Lane::kIndex, events.subspan(at, atf::kEventBytes));
  }
  return whole;
}

// For a manifest with a damaged name in it.
void take_known_platform(const ThreadFormat& said, ThreadFormat& format) {
  if (atf::to_text(format.arch) == "unknown") format.arch = said.arch;
  if (atf::to_text(format.os) == "unknown") format.os = said.os;
  if (atf::to_text(format.clock) == "unknown") format.clock = said.clock;
}

// Manifest and header may say different things, when one of them is damaged: the events decide.
Status choose_format(Fs& fs, const std::string& index_path, ThreadFormat& format) {
  const auto said = read_thread_format(fs, index_path);
  if (!said.ok()) return {};
  if (said->version == format.version && said->thread_id == format.thread_id) {
    take_known_platform(*said, format);
    return {};
  }
  const auto file = fs.open(index_path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  std::vector<uint8_t> events(64 * 1024);
  const auto got = (*file)->read_at(atf::kEventsOffset, events);
  if (!got.ok()) return got.error();
  events.resize(*got);
  if (whole_events(events, said->records()) > whole_events(events, format.records())) {
    format = *said;
  }
  return {};
}

std::string page_text(const Page& page) {
  return fmt::format("{} page of stream {} at record {}", lane_name(page.lane), page.stream_id,
                     page.first_seq);
}

}  // namespace

ThreadWriter::ThreadWriter(Fs& fs, Durability durability, std::string directory,
                           const ThreadFormat& format)
    : fs_(fs),
      durability_(durability),
      directory_(std::move(directory)),
      format_(format),
      index_(fs, fmt::format("{}/{}", directory_, kIndexFile), Lane::kIndex, format),
      detail_(fs, fmt::format("{}/{}", directory_, kDetailFile), Lane::kDetail, format),
      journal_(fs, directory_, kStreamJournalFile) {}

Result<std::unique_ptr<ThreadWriter>> ThreadWriter::create(Fs& fs, Durability durability,
                                                           const std::string& directory,
                                                           const ThreadFormat& format,
                                                           const StreamIdentity& identity) {
  COLLECT_TRY(fs.make_directory(directory));
  std::unique_ptr<ThreadWriter> thread(new ThreadWriter(fs, durability, directory, format));
  // The journal first: an index file without one would be a thread that no one can name.
  Status made = thread->journal_.create(identity);
  if (made.ok() && durability == Durability::kFsync) made = thread->journal_.sync();
  if (made.ok()) made = thread->index_.create(false);
  if (!made.ok()) {
    // Best effort; what stays is a thread without events.
    (void)thread->journal_.remove();
    (void)fs.remove_directory(directory);
    return made.error();
  }
  thread->journal_.close();
  return thread;
}

Result<std::unique_ptr<ThreadWriter>> ThreadWriter::reopen(Fs& fs, Durability durability,
                                                           const std::string& directory,
                                                           std::optional<ThreadFormat> format,
                                                           bool sealing,
                                                           std::span<const Gap> known_gaps) {
  if (!format) {
    auto found = read_thread_format(fs, fmt::format("{}/{}", directory, kIndexFile));
    if (!found.ok()) return found.error();
    format = *found;
  }
  COLLECT_TRY(choose_format(fs, fmt::format("{}/{}", directory, kIndexFile), *format));
  std::unique_ptr<ThreadWriter> thread(new ThreadWriter(fs, durability, directory, *format));
  ThreadRepair unfinished(fs, durability == Durability::kFsync, directory, *format);
  COLLECT_TRY(unfinished.finish());
  if (fs.exists(thread->index_.path())) {
    const auto is_whole = thread->journal_.is_whole();
    if (!is_whole.ok()) return is_whole.error();
    thread->journal_.close();
    thread->had_damaged_journal_ =
        !*is_whole && fs.exists(fmt::format("{}/{}", directory, kStreamJournalFile));
    if (!sealing) COLLECT_TRY(unfinished.restore_gaps(known_gaps));
  }
  if (fs.exists(thread->detail_.path())) COLLECT_TRY(thread->detail_.reopen());
  if (sealing || thread->detail_.sealed()) thread->found_links_ = LaneFile::Links::kBeingReplaced;
  if (fs.exists(thread->index_.path())) {
    COLLECT_TRY(thread->index_.reopen(thread->found_links_));
  } else {
    // The manifest names the thread, but the crash came before its file.
    const Status made = fs.make_directory(directory);
    if (!made.ok() && made.code() != Code::kAlreadyExists) return made.error();
    COLLECT_TRY(thread->index_.create(false));
  }
  return thread;
}

bool ThreadWriter::is_shorter_than(const ManifestThread& known) const {
  return index_.summary().records < known.events ||
         detail_.summary().records < known.detail_records;
}

std::unique_ptr<PageRestore> ThreadWriter::restore_pages() {
  return std::make_unique<PageRestore>(fs_, directory_, format_, index_, detail_);
}

Status ThreadWriter::repair(LaneFile& file, Lane lane, LaneFile::Links links,
                            uint64_t records_kept) {
  if (!file.exists() || file.sealed()) return {};
  if (file.is_damaged() && file.summary().records < records_kept) {
    const bool durable = durability_ == Durability::kFsync;
    ThreadRepair damaged(fs_, durable, directory_, format_);
    damaged.use_links_of(index_);
    const auto repaired = damaged.take_out_damaged(file, lane, links);
    if (!repaired.ok()) return repaired.error();
    damaged_records_ += repaired->removed;
    repair_cut_bytes_ += repaired->cut_bytes;
  }
  return file.end_reopen();
}

Status ThreadWriter::end_reopen(uint64_t events_kept, uint64_t detail_records_kept) {
  COLLECT_TRY(repair(detail_, Lane::kDetail, LaneFile::Links::kHold, detail_records_kept));
  COLLECT_TRY(repair(index_, Lane::kIndex, found_links_, events_kept));
  journal_.close();  // a repair may have put another in its place
  COLLECT_TRY(restore_journal());
  is_tail_doubtful_ = index_.summary().records != 0;
  return index_.sealed() ? Status() : index_.mark_has_detail(detail_.exists());
}

Status ThreadWriter::restore_journal() {
  // A gap behind the last record belongs to a page that was cut off: the agent will send it again.
  // A sealed detail file has fewer records than its gaps knew when records were dropped from it.
  COLLECT_TRY(journal_.reopen([&](const Gap& gap) {
    return gap.before_seq <= summary(gap.lane).records || file(gap.lane).sealed();
  }));
  for (uint64_t slot = 0;; ++slot) {
    Gap gap;
    std::optional<Stall> stall;
    auto there = journal_.read(slot, gap, &stall);
    if (!there.ok()) return there.error();
    if (!*there) break;
    if (stall) adopt_stall(*stall, kMaxStallsPerThread);
    if (gap.lost == 0) continue;
    newest_[lane_index(gap.lane)] = gap;
    gap.before_seq = std::min(gap.before_seq, summary(gap.lane).records);
    count_gap(gap);
  }
  journal_.close();
  return {};
}

void ThreadWriter::count_gap(const Gap& gap) {
  const size_t lane = lane_index(gap.lane);
  losses_[lane].gaps.add(gap);
  losses_[lane].numbered += gap.numbered_lost;
  dropped_[lane] += gap.lost - gap.numbered_lost;
}

// The journal holds one entry for all that is missing before one record; memory counts the
// addition.
Status ThreadWriter::put_gap(const Gap& gap) {
  Gap entry = gap;
  if (journal_.would_replace(gap)) {
    const Gap& newest = newest_[lane_index(gap.lane)];
    entry.lost += newest.lost;
    entry.numbered_lost += newest.numbered_lost;
    entry.reasons |= newest.reasons;
    if (newest.first_ns != 0) entry.first_ns = newest.first_ns;
    entry.last_ns = std::max(entry.last_ns, newest.last_ns);
  }
  const bool durable = durability_ == Durability::kFsync;
  // The page behind the gap may reach the disk before its commit: the journal's name comes first.
  // Before the entry too, so that what can fail for want of a descriptor fails with nothing done.
  if (durable) COLLECT_TRY(sync_names());
  COLLECT_TRY(journal_.put(entry, durable));
  directory_unsynced_ |= journal_.take_new();
  newest_[lane_index(gap.lane)] = entry;
  count_gap(gap);
  return durable ? sync_names() : Status();
}

Status ThreadWriter::check_page(const Page& page) const {
  if (page.bytes.size() > kMaxPageBytes) {
    return Error{Code::kDamaged, fmt::format("{}: {} bytes are more than a page has",
                                             page_text(page), page.bytes.size())};
  }
  if (page.first_seq >= kMaxRecordNumber || page.lost_total >= kMaxRecordNumber) {
    return Error{Code::kDamaged, page_text(page) + ": no such record number"};
  }
  const uint64_t least = page.lane == Lane::kIndex ? atf::kEventBytes : atf::kDetailHeaderBytes;
  const bool lengths_fit = page.lane == Lane::kIndex
                               ? page.bytes.size() == page.record_count * least
                               : page.bytes.size() >= page.record_count * least;
  if (!lengths_fit || (page.record_count == 0 && !page.bytes.empty())) {
    return Error{Code::kDamaged, fmt::format("{}: {} records in {} bytes", page_text(page),
                                             page.record_count, page.bytes.size())};
  }
  return {};
}

// A time, or a link, that is too high is not seen in the last record: nothing follows it.
Status ThreadWriter::doubt_tail(const Page& page, LaneSummary& after) {
  if (page.lane != Lane::kIndex || !is_tail_doubtful_ || page.record_count == 0) return {};
  if (page.first_seq < position(Lane::kIndex)) return {};
  is_tail_doubtful_ = false;
  LaneSummary joined = after;
  scan_index(format_.records(), page.bytes, 1, joined);
  LaneSummary alone;
  scan_index(format_.records(), page.bytes, UINT64_MAX, alone);
  // It fits, or the page itself is damaged.
  if (joined.records != after.records || alone.bytes != page.bytes.size()) return {};
  uint64_t kept = after.records;
  while (kept != 0 && after.records - kept < kMaxDoubtfulEvents) {
    uint8_t event[atf::kEventBytes];
    const auto got = index_.read_section((kept - 1) * atf::kEventBytes, event);
    if (!got.ok()) return got.error();
    if (*got < sizeof event || load_le<uint64_t>(event) <= alone.first_ns) break;
    --kept;
  }
  COLLECT_TRY(index_.rescan(kept * atf::kEventBytes, LaneFile::Links::kBeingReplaced));
  COLLECT_TRY(index_.cut(index_.summary()));
  damaged_records_ += after.records - kept;
  after = index_.summary();
  return {};
}

Status ThreadWriter::take(const Page& page, Run& run) {
  COLLECT_TRY(check_page(page));
  const size_t lane = lane_index(page.lane);
  const uint64_t damaged_before = damaged_records_;
  COLLECT_TRY(doubt_tail(page, run.after));
  const uint64_t position = run.after.records + losses_[lane].numbered;
  const uint64_t stored_already =
      page.first_seq < position ? std::min<uint64_t>(position - page.first_seq, page.record_count)
                                : 0;
  const uint64_t fresh = page.record_count - stored_already;

  Bytes bytes = page.bytes;
  if (fresh == 0) {
    bytes = {};
  } else if (stored_already != 0) {
    bytes = bytes.subspan(page.lane == Lane::kIndex ? stored_already * atf::kEventBytes
                                                    : detail_bytes(bytes, stored_already));
  }
  LaneSummary after = run.after;
  scan_lane(page.lane, format_.records(), bytes, fresh, after);
  if (after.records - run.after.records != fresh || after.bytes - run.after.bytes != bytes.size()) {
    const uint64_t good = after.records - run.after.records;
    return Error{Code::kDamaged, fmt::format("{}: record {} is damaged", page_text(page),
                                             page.first_seq + stored_already + good)};
  }
  if (format_.version == atf::Version::kV1 && after.records >= atf::kMaxEventsV1) {
    return Error{Code::kLimit, page_text(page) + ": more records than version 1 can number"};
  }

  Gap gap;
  gap.lane = page.lane;
  gap.numbered_lost = page.first_seq > position ? page.first_seq - position : 0;
  gap.lost =
      gap.numbered_lost + (page.lost_total > dropped_[lane] ? page.lost_total - dropped_[lane] : 0);
  if (gap.lost != 0) {
    COLLECT_TRY(flush(run));
    gap.before_seq = run.after.records;
    gap.reasons = page.lost_reasons;
    if (damaged_records_ != damaged_before) gap.reasons |= kLostDamaged;
    if (gap.numbered_lost != 0 && (gap.reasons & (kLostOverwritten | kLostDamaged)) == 0) {
      gap.reasons |= kLostUnavailable;
    }
    gap.first_ns = page.lost_first_ns;
    gap.last_ns = page.lost_last_ns;
    COLLECT_TRY(put_gap(gap));
  }
  if (fresh == 0) return {};
  const bool checked = stored_already == 0 && format_.version == atf::Version::kV2;
  after.checksum = checked ? crc32c_combine(run.after.checksum, page.bytes_crc32c, bytes.size())
                           : atf::section_checksum(format_.version, bytes, run.after.checksum);
  run.parts.push_back(bytes);
  run.after = after;
  return {};
}

Status ThreadWriter::append(std::span<const Page> pages) {
  if (pages.empty()) return {};
  Run run{pages.front().lane, {}, summary(pages.front().lane)};
  for (const Page& page : pages) {
    COLLECT_CHECK(page.lane == run.lane);
    const Status taken = take(page, run);
    if (taken.ok()) continue;
    COLLECT_TRY(flush(run));  // what came before the bad page is good
    return taken;
  }
  return flush(run);
}

Status ThreadWriter::flush(Run& run) {
  if (run.parts.empty()) return {};
  if (run.lane == Lane::kDetail && !detail_.exists()) COLLECT_TRY(begin_detail());
  const Status written = file(run.lane).append(run.parts, run.after);
  run.parts.clear();
  run.after = summary(run.lane);
  return written;
}

Status ThreadWriter::begin_detail() {
  COLLECT_TRY(detail_.create(false));
  directory_unsynced_ = true;
  // Readers take the flag as a hint, so a crash between the two is no contradiction.
  return index_.mark_has_detail(true);
}

Status ThreadWriter::expect(Lane lane, uint64_t numbered, uint64_t dropped, uint32_t reason,
                            uint64_t at_ns) {
  if (numbered >= kMaxRecordNumber || dropped >= kMaxRecordNumber) {
    return Error{Code::kDamaged, directory_ + ": the stream's end names no possible counts"};
  }
  Gap gap;
  gap.lane = lane;
  gap.before_seq = summary(lane).records;
  gap.numbered_lost = numbered > position(lane) ? numbered - position(lane) : 0;
  const uint64_t known = this->dropped(lane);
  gap.lost = gap.numbered_lost + (dropped > known ? dropped - known : 0);
  if (gap.lost == 0) return {};
  gap.reasons = reason;
  gap.first_ns = summary(lane).last_ns;
  gap.last_ns = std::max(at_ns, summary(lane).last_ns);
  const Status put = put_gap(gap);
  // No page follows, so nothing hangs on the journal: the manifest can still have it.
  if (!put.ok()) count_gap(gap);
  return put;
}

Status ThreadWriter::add_stalls(std::span<const Stall> stalls, size_t most) {
  for (const Stall& stall : stalls) {
    if (stalls_.is_repeat(stall)) continue;
    COLLECT_TRY(journal_.put(stall));
    directory_unsynced_ |= journal_.take_new();
    stalls_.add(stall, most);
  }
  return {};
}

void ThreadWriter::adopt_stall(const Stall& stall, size_t most) {
  if (!stalls_.is_repeat(stall)) stalls_.add(stall, most);
}

Status ThreadWriter::commit() {
  COLLECT_TRY(sync_files());
  return durability_ == Durability::kFsync ? sync_names() : Status();
}

Status ThreadWriter::sync_files() {
  if (durability_ != Durability::kFsync) return {};
  COLLECT_TRY(index_.sync());
  COLLECT_TRY(detail_.sync());
  return journal_.sync();
}

Status ThreadWriter::sync_names() {
  if (!directory_unsynced_) return {};
  COLLECT_TRY(fs_.sync_directory(directory_));
  directory_unsynced_ = false;
  return {};
}

void ThreadWriter::close_files() {
  index_.close();
  detail_.close();
  journal_.close();
}

size_t ThreadWriter::open_files() const {
  return size_t{index_.is_open()} + size_t{detail_.is_open()} + size_t{journal_.is_open()};
}

// A file that was sealed though its sync failed is whole; the first error of that kind is returned
// when everything is done.
Status ThreadWriter::seal() {
  const bool durable = durability_ == Durability::kFsync;
  Status synced;
  if (!index_.sealed()) {
    const Status linked = seal_detail(durable, synced);
    if (!linked.ok()) return linked;
    COLLECT_TRY(index_.mark_has_detail(detail_.exists()));
    const Status status = index_.seal(durable);
    if (!index_.sealed()) return status;
    if (synced.ok()) synced = status;
  } else if (detail_.exists() && !index_.header_has_detail()) {
    // It was removed before that, and power loss brought its name back.
    COLLECT_TRY(detail_.remove());
  }
  if (durable) {
    // Sealed by a daemon that ended right there, a file may still have to be synced.
    for (LaneFile* const file : {&detail_, &index_}) {
      const Status again = file->sync();
      if (synced.ok()) synced = again;
    }
    const Status named = fs_.sync_directory(directory_);
    if (synced.ok()) synced = named;
  }
  close_files();
  return synced;
}

// `synced` gets the error of a detail file that is sealed all the same.
Status ThreadWriter::seal_detail(bool durable, Status& synced) {
  const bool agree = links_agree(index_.summary(), detail_.summary());
  const RelinkFiles files{fs_, directory_, format_, index_, detail_, journal_, durable};
  if (detail_.exists() && detail_.summary().records == 0) {
    COLLECT_TRY(detail_.remove());  // made for a page that could not be written
  } else if (detail_.exists() && !detail_.sealed()) {
    synced =
        agree ? detail_.seal(durable) : relink_detail(files, losses_[lane_index(Lane::kDetail)]);
    if (!synced.ok() && detail_.exists() && !detail_.sealed()) return synced;
  }
  return agree ? Status() : relink_index(files);
}

Status ThreadWriter::collect_functions(FunctionSet& functions) {
  // Small blocks stay in the cache between the read and the look.
  constexpr size_t kReadBytes = 256 * 1024;
  std::vector<uint8_t> buffer(
      static_cast<size_t>(std::min<uint64_t>(kReadBytes, index_.summary().bytes)));
  for (uint64_t offset = 0; offset < index_.summary().bytes;) {
    auto got = index_.read_section(offset, buffer);
    if (!got.ok()) return got.error();
    if (*got < atf::kEventBytes) {
      return Error{Code::kTruncated, index_.path() + ": shorter than its events"};
    }
    const size_t whole = *got / atf::kEventBytes * atf::kEventBytes;
    functions.add_events(Bytes(buffer).first(whole));
    offset += whole;
  }
  return {};
}

Status ThreadWriter::remove_journal() {
  return journal_.remove();
}

}  // namespace collect::storage
