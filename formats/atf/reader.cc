#include "formats/atf/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "formats/core/crc32.h"

namespace collect::atf {
namespace {

ChecksumState compare_checksum(Version version, Bytes section, uint32_t stored) {
  if (stored == 0) return ChecksumState::kUnchecked;
  const bool is_castagnoli = crc32c(section) == stored;
  const bool is_ieee = !is_castagnoli && crc32_ieee(section) == stored;
  if (!is_castagnoli && !is_ieee) return ChecksumState::kBad;
  const bool own = version == Version::kV1 ? is_ieee : is_castagnoli;
  return own ? ChecksumState::kGood : ChecksumState::kOtherAlgorithm;
}

// False when the events section cannot begin where the header says.
bool section_fits(uint64_t events_offset, Bytes file) {
  return events_offset >= kHeaderBytes && events_offset <= file.size();
}

std::string events_offset_sentence(uint64_t events_offset, Bytes file) {
  return fmt::format("events_offset {} is not within the {} bytes of the file", events_offset,
                     file.size());
}

}  // namespace

std::string_view to_text(FileState state) {
  switch (state) {
    case FileState::kFinalized:
      return "finalized";
    case FileState::kStaleHeader:
      return "stale-header";
    case FileState::kUnfinalized:
      return "unfinalized";
  }
  return "unknown";
}

std::string_view to_text(ChecksumState state) {
  switch (state) {
    case ChecksumState::kNone:
      return "none";
    case ChecksumState::kUnchecked:
      return "unchecked";
    case ChecksumState::kGood:
      return "ok";
    case ChecksumState::kOtherAlgorithm:
      return "other-algorithm";
    case ChecksumState::kBad:
      return "bad";
  }
  return "unknown";
}

std::string_view to_text(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return "x86_64";
    case Arch::kArm64:
      return "arm64";
  }
  return "unknown";
}

std::string_view to_text(Os os) {
  switch (os) {
    case Os::kIos:
      return "ios";
    case Os::kAndroid:
      return "android";
    case Os::kMacos:
      return "macos";
    case Os::kLinux:
      return "linux";
    case Os::kWindows:
      return "windows";
  }
  return "unknown";
}

std::string_view to_text(ClockType clock) {
  switch (clock) {
    case ClockType::kMachContinuous:
      return "mach_continuous";
    case ClockType::kQpc:
      return "qpc";
    case ClockType::kBoottime:
      return "boottime";
  }
  return "unknown";
}

std::string_view to_text(EventKind kind) {
  switch (kind) {
    case EventKind::kCall:
      return "call";
    case EventKind::kReturn:
      return "return";
    case EventKind::kException:
      return "exception";
  }
  return "unknown";
}

std::optional<IndexReader> IndexReader::open(Bytes file, Findings& findings,
                                             const BringBytes* bring) {
  IndexReader reader;
  reader.bring_ = bring;
  if (auto why = refuse_index_header(file, reader.header_)) {
    findings.add(std::move(*why));
    return std::nullopt;
  }
  if (!section_fits(reader.header_.events_offset, file)) {
    findings.add(Severity::kError, Lane::kIndex, Check::kHeader, 32,
                 events_offset_sentence(reader.header_.events_offset, file));
    return std::nullopt;
  }
  reader.find_footer(file);
  const uint64_t fits = reader.section_.size() / kEventBytes;
  reader.size_ = reader.footer_ ? std::min(reader.footer_->event_count, fits) : fits;
  reader.compare_footer(file, findings);
  return reader;
}

EventSpan EventBlocks::bring(uint64_t first, uint64_t end) {
  const uint64_t offset = index_.offset_of(first);
  if (block_.empty() || offset < begin_ || offset + kEventBytes > begin_ + block_.size()) {
    begin_ = offset / kBroughtBytes * kBroughtBytes;
    block_.resize(std::min(kBroughtBytes, index_.footer_offset() - begin_));
    (*bring_)(begin_, block_);
  }
  const uint64_t here = (begin_ + block_.size() - offset) / kEventBytes;
  // One that two blocks share, which our own files do not have.
  if (here == 0) return index_.events(first, 1);
  const uint64_t count = std::min(here, end - first);
  return {index_.version(), Bytes(block_).subspan(offset - begin_, count * kEventBytes), first};
}

// Two places can hold the footer: where the header says, and the end of the file when the crash
// came between writing the footer and rewriting the header. A candidate counts when its magic fits
// and it is not before the events; of two, the one whose byte count equals its section wins.
void IndexReader::find_footer(Bytes file) {
  struct Candidate {
    uint64_t offset;
    FileState state;
    std::optional<IndexFooter> footer;
  };
  const uint64_t begin = header_.events_offset;
  std::array<Candidate, 2> candidates{{{header_.footer_offset, FileState::kFinalized, {}},
                                       {file.size() - kFooterBytes, FileState::kStaleHeader, {}}}};
  const Candidate* best = nullptr;
  for (Candidate& candidate : candidates) {
    if (candidate.offset < begin || candidate.offset > file.size() - kFooterBytes) continue;
    candidate.footer = decode_index_footer(file.subspan(candidate.offset));
    if (!candidate.footer) continue;
    const bool consistent = candidate.footer->bytes_written == candidate.offset - begin;
    // A new file's header says "footer at events_offset". Where events follow, a first event whose
    // time happens to spell the magic must not hide them all.
    if (candidate.offset == begin && !consistent && file.size() > begin + kFooterBytes) continue;
    if (best == nullptr || (consistent && best->footer->bytes_written != best->offset - begin)) {
      best = &candidate;
    }
  }
  if (best == nullptr) {
    section_ = file.subspan(begin);
    return;
  }
  footer_ = best->footer;
  state_ = best->offset == header_.footer_offset ? FileState::kFinalized : best->state;
  section_ = file.subspan(begin, best->offset - begin);
}

void IndexReader::compare_footer(Bytes file, Findings& findings) const {
  if (!footer_) return;
  const uint64_t bytes = section_.size();
  const uint64_t at = footer_offset();
  // The count is compared by division: times 32 it could wrap around.
  if (bytes % kEventBytes != 0 || footer_->event_count != bytes / kEventBytes ||
      footer_->bytes_written != bytes) {
    findings.add(
        Severity::kError, Lane::kIndex, Check::kFooterCount, at,
        fmt::format(
            "the footer says {} events in {} bytes; the section has {} bytes, {} events are read",
            footer_->event_count, footer_->bytes_written, bytes, size_));
  }
  if (state_ != FileState::kFinalized) return;
  if (header_.event_count != footer_->event_count ||
      header_.time_start_ns != footer_->time_start_ns ||
      header_.time_end_ns != footer_->time_end_ns) {
    findings.add(Severity::kError, Lane::kIndex, Check::kHeaderFooter, at,
                 "header and footer disagree about the count or the times; the footer is used");
  }
  const uint64_t after = file.size() - at - kFooterBytes;
  if (after != 0) {
    findings.add(Severity::kWarning, Lane::kIndex, Check::kAfterFooter, at + kFooterBytes,
                 fmt::format("{} bytes after the footer are not read", after));
  }
}

EventSpan IndexReader::events(uint64_t first, uint64_t count) const {
  first = std::min(first, size_);
  count = std::min(count, size_ - first);
  return EventSpan(header_.version, section_.subspan(first * kEventBytes, count * kEventBytes),
                   first);
}

ChecksumState IndexReader::checksum() const {
  if (!footer_) return ChecksumState::kNone;
  return compare_checksum(header_.version, section_, footer_->checksum);
}

ChecksumState IndexReader::checksum(uint32_t computed) const {
  const bool good = footer_ && footer_->checksum != 0 && footer_->checksum == computed;
  return good ? ChecksumState::kGood : checksum();
}

std::optional<DetailRecord> DetailCursor::next() {
  auto record = decode_detail_record(version_, section_.subspan(at_));
  if (!record) return std::nullopt;
  at_ += kDetailHeaderBytes + record->payload.size();
  ++seq_;
  return record;
}

std::optional<DetailReader> DetailReader::open(Bytes file, Findings& findings) {
  DetailReader reader;
  if (auto why = refuse_detail_header(file, reader.header_)) {
    findings.add(std::move(*why));
    return std::nullopt;
  }
  if (!section_fits(reader.header_.events_offset, file)) {
    findings.add(Severity::kError, Lane::kDetail, Check::kDetailHeader, 20,
                 events_offset_sentence(reader.header_.events_offset, file));
    return std::nullopt;
  }
  reader.find_footer(file);
  return reader;
}

// The detail header names no footer, but its own end of the events does. Records are of any length,
// so an unfinalized file may end in stack bytes that spell the magic: behind a header that was
// never completed, only a footer whose byte count is right counts.
void DetailReader::find_footer(Bytes file) {
  const uint64_t begin = header_.events_offset;
  const uint64_t last = file.size() - kFooterBytes;
  section_ = file.subspan(begin);
  if (last < begin) return;
  const bool completed = header_.bytes_length != 0 || header_.event_count != 0;
  uint64_t at = last;
  if (completed && header_.bytes_length <= last - begin &&
      decode_detail_footer(file.subspan(begin + header_.bytes_length))) {
    at = begin + header_.bytes_length;
  }
  auto footer = decode_detail_footer(file.subspan(at));
  if (!footer || (!completed && footer->bytes_length != at - begin)) return;
  footer_ = footer;
  section_ = file.subspan(begin, at - begin);
  bytes_after_footer_ = last - at;
  state_ = !completed && !section_.empty() ? FileState::kStaleHeader : FileState::kFinalized;
}

const std::vector<uint64_t>& DetailReader::offsets() const {
  if (!offsets_) {
    std::vector<uint64_t> found;
    DetailCursor cursor = records();
    for (;;) {
      const uint64_t at = cursor.consumed_bytes();
      if (!cursor.next()) break;
      found.push_back(at);
    }
    found.shrink_to_fit();
    offsets_ = std::move(found);
  }
  return *offsets_;
}

uint64_t DetailReader::size() const {
  if (!size_) {
    DetailCursor cursor = records();
    while (cursor.next()) {
    }
    size_ = cursor.seq();
  }
  return *size_;
}

std::optional<DetailRecord> DetailReader::get(uint64_t seq) const {
  if (seq >= offsets().size()) return std::nullopt;
  return decode_detail_record(header_.version, section_.subspan(offsets()[seq]));
}

std::optional<uint64_t> DetailReader::offset_of(uint64_t seq) const {
  if (seq >= offsets().size()) return std::nullopt;
  return header_.events_offset + offsets()[seq];
}

ChecksumState DetailReader::checksum() const {
  if (!footer_) return ChecksumState::kNone;
  return compare_checksum(header_.version, section_, footer_->checksum);
}

ChecksumState DetailReader::checksum(uint32_t computed) const {
  const bool good = footer_ && footer_->checksum != 0 && footer_->checksum == computed;
  return good ? ChecksumState::kGood : checksum();
}

}  // namespace collect::atf
