#include "storage/thread/lane_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "formats/atf/headers.h"
#include "formats/atf/writer.h"

namespace collect::storage {
namespace {

using atf::kEventsOffset;
using atf::kFooterBytes;
using atf::kHeaderBytes;

using Block = std::array<uint8_t, kHeaderBytes>;

Status write_one(File& file, uint64_t offset, Bytes bytes) {
  const Bytes parts[] = {bytes};
  return file.write_at(offset, parts);
}

}  // namespace

Result<ThreadFormat> read_thread_format(Fs& fs, const std::string& index_path) {
  auto file = fs.open(index_path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  Block block{};
  auto got = (*file)->read_at(0, block);
  if (!got.ok()) return got.error();
  const auto header = atf::decode_index_header(Bytes(block.data(), *got));
  if (!header.ok())
    return Error{header.code(), fmt::format("{}: {}", index_path, header.error().message)};
  const atf::IndexHeader& h = header.value();
  return ThreadFormat{h.version, h.arch, h.os, h.clock, h.thread_id};
}

Status LaneFile::create(bool has_detail) {
  auto file = fs_.open(path_, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  header_has_detail_ = has_detail;
  const Status written = write_header(false);
  if (!written.ok()) {
    file_.reset();
    // Left behind, it would be an empty file: recovery knows what that is.
    (void)fs_.remove_file(path_);
    return written;
  }
  exists_ = true;
  return {};
}

Status LaneFile::ensure_open() {
  if (file_ != nullptr) return {};
  auto file = fs_.open(path_, OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  return {};
}

Result<File*> LaneFile::open_again() {
  COLLECT_TRY(ensure_open());
  return file_.get();
}

Status LaneFile::write_header(bool final_counts) {
  Block block{};
  const uint64_t footer_offset = final_counts ? kEventsOffset + summary_.bytes : 0;
  if (lane_ == Lane::kIndex) {
    atf::IndexHeader header;
    header.version = format_.version;
    header.arch = format_.arch;
    header.os = format_.os;
    header.clock = format_.clock;
    header.thread_id = format_.thread_id;
    header.flags = header_has_detail_ ? atf::kIndexFlagHasDetailFile : 0;
    header.footer_offset = footer_offset;
    if (final_counts) {
      header.event_count = summary_.records;
      header.time_start_ns = summary_.first_ns;
      header.time_end_ns = summary_.last_ns;
    }
    atf::encode_index_header(header, block);
  } else {
    atf::DetailFileHeader header;
    header.version = format_.version;
    header.arch = format_.arch;
    header.os = format_.os;
    header.thread_id = format_.thread_id;
    if (final_counts && summary_.records != 0) {
      header.event_count = summary_.records;
      header.bytes_length = summary_.bytes;
      header.index_seq_start = summary_.first_link;
      header.index_seq_end = summary_.next_link - 1;
    }
    atf::encode_detail_header(header, block);
  }
  unsynced_ = true;
  return write_one(*file_, 0, block);
}

Status LaneFile::mark_has_detail(bool has_detail) {
  if (header_has_detail_ == has_detail) return {};
  COLLECT_TRY(ensure_open());
  header_has_detail_ = has_detail;
  const Status written = write_header(false);
  if (!written.ok()) header_has_detail_ = !has_detail;
  return written;
}

Status LaneFile::restore_length() {
  if (!length_uncertain_) return {};
  COLLECT_TRY(ensure_open());
  COLLECT_TRY(file_->truncate(kEventsOffset + summary_.bytes));
  aside_end_ = 0;
  length_uncertain_ = false;
  unsynced_ = true;
  return {};
}

// Before it is written up to `end`.
void LaneFile::set_aside(uint64_t end) {
  if (end < kLeastBytesForAside || end <= aside_end_) return;
  const uint64_t begin = std::max(aside_end_, kEventsOffset + summary_.bytes);
  aside_end_ = end + std::min(end / 4, kMostBytesAside);
  file_->set_aside(begin, aside_end_ - begin);
}

Status LaneFile::append(std::span<const Bytes> parts, const LaneSummary& after) {
  COLLECT_TRY(ensure_open());
  COLLECT_TRY(restore_length());
  set_aside(kEventsOffset + after.bytes);
  const Status written = file_->write_at(kEventsOffset + summary_.bytes, parts);
  if (!written.ok()) {
    length_uncertain_ = true;
    // Tried again before the next write and before sealing; the error that counts is the first.
    (void)restore_length();
    return written;
  }
  summary_ = after;
  unsynced_ = true;
  return {};
}

Status LaneFile::cut(const LaneSummary& shorter) {
  summary_ = shorter;
  length_uncertain_ = true;
  return restore_length();
}

Result<size_t> LaneFile::read_section(uint64_t offset, MutableBytes out) {
  const Status opened = ensure_open();
  if (!opened.ok()) return opened.error();
  const uint64_t left = summary_.bytes - std::min(offset, summary_.bytes);
  return file_->read_at(kEventsOffset + offset,
                        out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), left))));
}

Status LaneFile::overwrite_section(uint64_t offset, Bytes bytes) {
  COLLECT_TRY(ensure_open());
  unsynced_ = true;
  return write_one(*file_, kEventsOffset + offset, bytes);
}

Status LaneFile::sync() {
  if (!sync_failure_.ok()) return sync_failure_;
  if (!exists_ || !unsynced_) return {};
  COLLECT_TRY(ensure_open());
  sync_failure_ = file_->sync();
  if (sync_failure_.ok()) unsynced_ = false;
  return sync_failure_;
}

Status LaneFile::seal(bool durable) {
  if (sealed_) return {};
  COLLECT_TRY(ensure_open());
  COLLECT_TRY(restore_length());
  Block block{};
  if (lane_ == Lane::kIndex) {
    atf::encode_index_footer(
        {summary_.checksum, summary_.records, summary_.first_ns, summary_.last_ns, summary_.bytes},
        block);
  } else {
    atf::encode_detail_footer(
        {summary_.checksum, summary_.records, summary_.bytes, summary_.first_ns, summary_.last_ns},
        block);
  }
  const Status footer = write_one(*file_, kEventsOffset + summary_.bytes, block);
  if (!footer.ok()) {
    length_uncertain_ = true;
    (void)restore_length();  // a part of a footer would be taken for damaged records
    return footer;
  }
  unsynced_ = true;
  Status synced = durable ? sync() : Status();
  COLLECT_TRY(write_header(true));
  sealed_ = true;
  // What is left over is for others.
  if (aside_end_ != 0 && synced.ok()) {
    synced = file_->truncate(kEventsOffset + summary_.bytes + kFooterBytes);
  }
  if (durable && synced.ok()) synced = sync();
  return synced;
}

Status LaneFile::remove() {
  file_.reset();
  COLLECT_TRY(fs_.remove_file(path_));
  exists_ = false;
  unsynced_ = false;
  summary_ = {};
  return {};
}

Status LaneFile::replace_by_sealed(LaneFile& replacement) {
  COLLECT_CHECK(replacement.sealed_);
  file_.reset();
  replacement.file_.reset();
  COLLECT_TRY(fs_.rename(replacement.path_, path_));
  summary_ = replacement.summary_;
  sealed_ = true;
  length_uncertain_ = false;
  unsynced_ = replacement.unsynced_;
  sync_failure_ = replacement.sync_failure_;
  replacement.exists_ = false;
  return {};
}

bool LaneFile::understands(Bytes header) const {
  if (lane_ == Lane::kIndex) {
    const auto decoded = atf::decode_index_header(header);
    return decoded.ok() && decoded.value().version == format_.version &&
           decoded.value().thread_id == format_.thread_id &&
           decoded.value().events_offset == kEventsOffset;
  }
  const auto decoded = atf::decode_detail_header(header);
  return decoded.ok() && decoded.value().version == format_.version &&
         decoded.value().thread_id == format_.thread_id &&
         decoded.value().events_offset == kEventsOffset;
}

// Whether header and footer say both that the section has these bytes. The records and the checksum
// are compared after the scan.
bool LaneFile::is_sealed_by(Bytes header, Bytes footer, uint64_t section_bytes) const {
  if (lane_ == Lane::kIndex) {
    const auto tail = atf::decode_index_footer(footer);
    const auto head = atf::decode_index_header(header);
    return tail && head.ok() && tail->bytes_written == section_bytes &&
           head.value().footer_offset == kEventsOffset + section_bytes &&
           head.value().event_count == tail->event_count;
  }
  const auto tail = atf::decode_detail_footer(footer);
  const auto head = atf::decode_detail_header(header);
  return tail && head.ok() && tail->bytes_length == section_bytes &&
         head.value().bytes_length == section_bytes &&
         head.value().event_count == tail->event_count;
}

Status LaneFile::scan_file(uint64_t section_bytes, Links links) {
  std::vector<uint8_t> buffer(
      static_cast<size_t>(std::min<uint64_t>(kScanBlockBytes, section_bytes)));
  summary_ = {};
  RecordFormat format = format_.records();
  format.without_links = links == Links::kBeingReplaced;
  if (format.without_links) summary_.links = kLinksNotKnown;
  while (summary_.bytes < section_bytes) {
    const uint64_t left = section_bytes - summary_.bytes;
    const MutableBytes want(buffer.data(),
                            static_cast<size_t>(std::min<uint64_t>(buffer.size(), left)));
    auto got = file_->read_at(kEventsOffset + summary_.bytes, want);
    if (!got.ok()) return got.error();
    LaneSummary next = summary_;
    scan_lane(lane_, format, want.first(*got), UINT64_MAX, next);
    const size_t whole = static_cast<size_t>(next.bytes - summary_.bytes);
    if (whole == 0) return {};
    next.checksum = atf::section_checksum(format_.version, want.first(whole), summary_.checksum);
    summary_ = next;
  }
  return {};
}

Status LaneFile::reopen(Links links) {
  auto file = fs_.open(path_, OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  exists_ = true;
  unsynced_ = true;  // its writer may have ended before it was synced
  auto size = file_->size();
  if (!size.ok()) return size.error();
  Block header{};
  auto got = file_->read_at(0, header);
  if (!got.ok()) return got.error();
  const bool header_good = understands(Bytes(header.data(), *got));
  if (header_good && lane_ == Lane::kIndex) {
    header_has_detail_ =
        (atf::decode_index_header(header).value().flags & atf::kIndexFlagHasDetailFile) != 0;
  }
  uint64_t section_bytes = *size - std::min<uint64_t>(*size, kEventsOffset);
  uint32_t stored_checksum = 0;
  bool sealed = false;
  if (header_good && section_bytes >= kFooterBytes) {
    Block footer{};
    auto footer_got = file_->read_at(*size - kFooterBytes, footer);
    if (!footer_got.ok()) return footer_got.error();
    if (is_sealed_by(header, Bytes(footer.data(), *footer_got), section_bytes - kFooterBytes)) {
      sealed = true;
      section_bytes -= kFooterBytes;
      stored_checksum = load_le<uint32_t>(footer.data() + 4);
    }
  }
  COLLECT_TRY(scan_file(section_bytes, links));
  found_bytes_ = summary_.bytes;
  if (sealed && summary_.bytes == section_bytes && summary_.checksum == stored_checksum) {
    sealed_ = true;
    // The process that sealed it may have ended before it gave back what was set aside.
    return file_->truncate(*size);
  }
  found_bytes_ = section_bytes;
  header_stale_ = !header_good || sealed;
  return {};
}

Status LaneFile::rescan(uint64_t section_bytes, Links links) {
  COLLECT_TRY(ensure_open());
  return scan_file(section_bytes, links);
}

Status LaneFile::end_reopen() {
  if (sealed_) return {};
  COLLECT_TRY(ensure_open());
  cut_bytes_ = found_bytes_ - summary_.bytes;
  if (header_stale_) COLLECT_TRY(write_header(false));
  header_stale_ = false;
  found_bytes_ = summary_.bytes;
  length_uncertain_ = true;
  return restore_length();
}

}  // namespace collect::storage
