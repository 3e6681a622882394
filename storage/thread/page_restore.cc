#include "storage/thread/page_restore.h"

#include <algorithm>
#include <cstring>

#include "storage/model/session_layout.h"
#include "storage/thread/record_scan.h"

namespace collect::storage {
namespace {

// Sealing replaces it, and relinking sets it again.
bool is_same_event(atf::Version version, const uint8_t* one, const uint8_t* other) {
  const size_t link = version == atf::Version::kV1 ? offsetof(atf::IndexEventV1, detail_seq)
                                                   : offsetof(atf::IndexEventV2, detail_seq);
  const size_t after = link + (version == atf::Version::kV1 ? sizeof(uint32_t) : sizeof(uint64_t));
  return std::memcmp(one, other, link) == 0 &&
         std::memcmp(one + after, other + after, atf::kEventBytes - after) == 0;
}

}  // namespace

PageRestore::PageRestore(Fs& fs, const std::string& directory, const ThreadFormat& format,
                         LaneFile& index, LaneFile& detail)
    : format_(format),
      index_(index),
      detail_(detail),
      journal_(fs, directory, kStreamJournalFile) {}

Result<uint64_t> PageRestore::position_of(Lane lane, uint64_t seq) {
  const size_t at = static_cast<size_t>(lane);
  if (!positions_[at] || seq < last_asked_[at]) {
    positions_[at].emplace(journal_, lane, UINT64_MAX);
  }
  last_asked_[at] = seq;
  const auto place = positions_[at]->place(seq);
  if (!place.ok()) return place.error();
  return place->position;
}

Status PageRestore::put(const Page& page) {
  if (page.first_seq >= kMaxRecordNumber || page.record_count == 0) return {};
  LaneFile& file = page.lane == Lane::kIndex ? index_ : detail_;
  if (file.sealed()) return {};
  return page.lane == Lane::kIndex ? put_index(page) : put_detail(page);
}

Result<bool> PageRestore::has_its_place(uint64_t differ, uint64_t records) {
  if (2 * differ <= records) return true;
  if (!journal_is_whole_) {
    const auto whole = journal_.is_whole();
    if (!whole.ok()) return whole.error();
    journal_is_whole_ = *whole;
  }
  return *journal_is_whole_;
}

// A gap may be within the page: records that an earlier recovery took out.
Status PageRestore::put_index(const Page& page) {
  if (page.bytes.size() != uint64_t{page.record_count} * atf::kEventBytes) return {};
  const uint64_t found = index_.found_bytes() / atf::kEventBytes;
  uint64_t begin = 0;  // of a run of records that are behind one another in the file
  uint64_t begin_position = kLost;
  const auto end_run = [&](uint64_t end) -> Status {
    if (begin_position == kLost || begin == end) return {};
    return put_events(begin_position, page.bytes.subspan(begin * atf::kEventBytes,
                                                         (end - begin) * atf::kEventBytes));
  };
  for (uint64_t i = 0; i < page.record_count; ++i) {
    const auto position = position_of(Lane::kIndex, page.first_seq + i);
    if (!position.ok()) return position.error();
    if (*position != kLost && *position >= found) {
      has_more_ = true;
      return end_run(i);
    }
    if (begin_position != kLost && *position == begin_position + (i - begin)) continue;
    COLLECT_TRY(end_run(i));
    begin = i;
    begin_position = *position;
  }
  return end_run(page.record_count);
}

Status PageRestore::put_events(uint64_t position, Bytes events) {
  const auto file = index_.open_again();
  if (!file.ok()) return file.error();
  found_.resize(events.size());
  const uint64_t offset = atf::kEventsOffset + position * atf::kEventBytes;
  const auto got = (*file)->read_at(offset, found_);
  if (!got.ok()) return got.error();
  uint64_t differ = 0;
  for (size_t at = 0; at + atf::kEventBytes <= *got; at += atf::kEventBytes) {
    if (!is_same_event(format_.version, found_.data() + at, events.data() + at)) ++differ;
  }
  if (differ == 0) return {};
  const auto has_place = has_its_place(differ, *got / atf::kEventBytes);
  if (!has_place.ok()) return has_place.error();
  if (!*has_place) return {};
  restored_ += differ;
  changed_[static_cast<size_t>(Lane::kIndex)] = true;
  return index_.overwrite_section(position * atf::kEventBytes,
                                  events.first(*got / atf::kEventBytes * atf::kEventBytes));
}

// The position of a record follows from the lengths of all before it: those of pages, and of whole
// records in the file.
Status PageRestore::put_detail(const Page& page) {
  const auto position = position_of(Lane::kDetail, page.first_seq);
  if (!position.ok()) return position.error();
  if (*position == kLost || *position < detail_position_) return {};
  // Records that an earlier recovery took out of its middle: the rest is not behind one another.
  const auto last = position_of(Lane::kDetail, page.first_seq + page.record_count - 1);
  if (!last.ok()) return last.error();
  if (*last != *position + page.record_count - 1) return {};
  const auto file = detail_.open_again();
  if (!file.ok()) {
    has_more_ = true;  // there is none
    return {};
  }
  while (detail_position_ < *position) {
    uint8_t header[atf::kDetailHeaderBytes];
    const auto got = (*file)->read_at(atf::kEventsOffset + detail_offset_, header);
    if (!got.ok()) return got.error();
    if (*got < sizeof header) {
      has_more_ = true;
      return {};
    }
    const uint32_t length = load_le<uint32_t>(header);
    store_le(header, uint32_t{sizeof header});
    if (length < sizeof header || !holds_alone(format_.records(), Lane::kDetail, header)) return {};
    detail_offset_ += length;
    ++detail_position_;
  }
  if (detail_offset_ + page.bytes.size() > detail_.found_bytes()) has_more_ = true;
  if (detail_offset_ >= detail_.found_bytes()) return {};
  const size_t there = static_cast<size_t>(
      std::min<uint64_t>(page.bytes.size(), detail_.found_bytes() - detail_offset_));
  found_.resize(there);
  const auto got = (*file)->read_at(atf::kEventsOffset + detail_offset_, found_);
  if (!got.ok()) return got.error();
  uint64_t differ = 0;
  uint64_t records = 0;
  for (size_t at = 0; at < *got; ++records) {
    const size_t length = detail_bytes(page.bytes.subspan(at), 1);
    if (length == 0) break;
    const size_t end = std::min(at + length, *got);
    if (std::memcmp(found_.data() + at, page.bytes.data() + at, end - at) != 0) ++differ;
    at += length;
  }
  const auto has_place = has_its_place(differ, records);
  if (!has_place.ok()) return has_place.error();
  if (!*has_place) return {};
  if (differ != 0) {
    restored_ += differ;
    changed_[static_cast<size_t>(Lane::kDetail)] = true;
    COLLECT_TRY(detail_.overwrite_section(detail_offset_, page.bytes.first(*got)));
  }
  detail_position_ += page.record_count;
  detail_offset_ += page.bytes.size();
  return {};
}

Status PageRestore::finish(LaneFile::Links links) {
  if (changed_[1]) COLLECT_TRY(detail_.rescan(detail_.found_bytes(), LaneFile::Links::kHold));
  if (changed_[0]) COLLECT_TRY(index_.rescan(index_.found_bytes(), links));
  return {};
}

}  // namespace collect::storage
