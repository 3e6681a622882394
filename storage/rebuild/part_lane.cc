#include "storage/rebuild/part_lane.h"

#include <algorithm>
#include <utility>

#include "formats/atf/writer.h"

namespace collect::storage {
namespace {

// A link of a record, in either version; kNoDetail where there is none.
struct LinkField {
  size_t offset;
  bool is_wide;

  uint64_t read(const uint8_t* record) const {
    if (is_wide) return load_le<uint64_t>(record + offset);
    const uint32_t link = load_le<uint32_t>(record + offset);
    return link == atf::kNoDetailV1 ? atf::kNoDetail : link;
  }
  void write(uint8_t* record, uint64_t link) const {
    if (is_wide) {
      store_le(record + offset, link);
    } else {
      store_le(record + offset, static_cast<uint32_t>(link));
    }
  }
};

LinkField link_field(Lane lane, atf::Version version) {
  if (lane == Lane::kDetail) {
    return {offsetof(atf::DetailHeaderV2, index_seq), version == atf::Version::kV2};
  }
  return version == atf::Version::kV2 ? LinkField{offsetof(atf::IndexEventV2, detail_seq), true}
                                      : LinkField{offsetof(atf::IndexEventV1, detail_seq), false};
}

}  // namespace

PartLane::PartLane(atf::Version version, LaneSource source, const Manifest& manifest,
                   const PartNumbers& numbers)
    : version_(version),
      lane_(source.lane),
      pages_(std::move(source), manifest),
      numbers_(numbers) {}

Result<const Page*> PartLane::peek() {
  if (page_) return static_cast<const Page*>(&*page_);
  auto next = pages_.next(buffer_);
  if (!next.ok()) return next.error();
  if (!*next || (*next)->record_count == 0) return static_cast<const Page*>(nullptr);
  page_ = **next;
  checksum_ = atf::section_checksum(version_, page_->bytes, checksum_);
  number_page();
  number_links();
  return static_cast<const Page*>(&*page_);
}

// Numbered losses are the jumps in the numbers; another part may have those records.
void PartLane::number_page() {
  const uint64_t position = page_->first_seq;
  page_->first_seq = numbers_.of(lane_).number_of(position);
  page_->lost_total -= std::min(page_->lost_total, page_->first_seq - position);
  const uint32_t other_reasons = page_->lost_reasons & ~uint32_t{kLostUnavailable};
  if (other_reasons != 0) page_->lost_reasons = other_reasons;
}

void PartLane::number_links() {
  const RecordNumbers& others = numbers_.of(lane_ == Lane::kIndex ? Lane::kDetail : Lane::kIndex);
  if (others.is_identity()) return;
  const LinkField link = link_field(lane_, version_);
  linked_.assign(page_->bytes.begin(), page_->bytes.end());
  for (size_t at = 0; at < linked_.size();) {
    uint8_t* const record = linked_.data() + at;
    const uint64_t position = link.read(record);
    if (position != atf::kNoDetail) link.write(record, others.number_of(position));
    at += lane_ == Lane::kIndex ? atf::kEventBytes : load_le<uint32_t>(record);
  }
  page_->bytes = linked_;
}

}  // namespace collect::storage
