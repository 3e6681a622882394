#include "storage/container/page_version.h"

#include <span>

#include "formats/atf/writer.h"
#include "formats/core/crc32.h"

namespace collect::storage {

Result<Page> PageVersion::convert(const Page& page, uint32_t thread_id) {
  if (from_ == to_ || page.bytes.empty()) return page;
  bytes_.clear();
  Page converted = page;
  converted.record_count = 0;
  COLLECT_TRY(page.lane == Lane::kIndex ? convert_events(page, thread_id, converted.record_count)
                                        : convert_details(page, thread_id, converted.record_count));
  left_out_[static_cast<size_t>(page.lane)] += page.record_count - converted.record_count;
  converted.bytes = bytes_;
  converted.encoded = {};
  converted.bytes_crc32c = crc32c(converted.bytes);
  return converted;
}

std::vector<std::pair<std::string_view, uint64_t>> PageVersion::left_out() const {
  std::vector<std::pair<std::string_view, uint64_t>> all = {
      {"events beyond the number that version 1 can give", left_out(Lane::kIndex)},
      {"detail records beyond the number that version 1 can give", left_out(Lane::kDetail)},
      {"call depths that counting calls and returns does not give: version 2 has none",
       depths_left_out_}};
  std::erase_if(all, [](const auto& one) { return one.second == 0; });
  return all;
}

Status PageVersion::convert_events(const Page& page, uint32_t thread_id, uint32_t& count) {
  if (page.bytes.size() != size_t{page.record_count} * atf::kEventBytes) {
    return Error{Code::kDamaged, "the page's events are not as many as it says"};
  }
  bytes_.resize(page.bytes.size());
  uint32_t& depth = depths_[page.stream_id];
  for (uint32_t i = 0; i < page.record_count && may_have_number(page.first_seq + i); ++i, ++count) {
    const size_t at = size_t{i} * atf::kEventBytes;
    atf::IndexEvent event = atf::decode_index_event(from_, page.bytes.data() + at);
    if (event.kind == atf::EventKind{}) return Error{Code::kDamaged, "an event of no known kind"};
    if (event.detail_seq != atf::kNoDetail && !may_have_number(event.detail_seq)) {
      event.detail_seq = atf::kNoDetail;  // its record is left out
    }
    const uint32_t counted = event.kind == atf::EventKind::kCall ? ++depth
                             : depth == 0                        ? 0
                                                                 : depth--;
    if (to_ == atf::Version::kV1) {
      event.thread_id = thread_id;
      event.call_depth = counted;
    } else {
      depths_left_out_ += event.call_depth != counted;
    }
    atf::encode_index_event(to_, event,
                            std::span<uint8_t, atf::kEventBytes>(&bytes_[at], atf::kEventBytes));
  }
  bytes_.resize(size_t{count} * atf::kEventBytes);
  return {};
}

Status PageVersion::convert_details(const Page& page, uint32_t thread_id, uint32_t& count) {
  bytes_.resize(page.bytes.size());  // a record has one length in both versions
  size_t from = 0, to = 0;
  for (uint32_t i = 0; i < page.record_count; ++i) {
    auto record = atf::decode_detail_record(from_, page.bytes.subspan(from));
    if (!record) return Error{Code::kDamaged, "the page's records are not as many as it says"};
    from += atf::kDetailHeaderBytes + record->payload.size();
    // Numbers only rise: behind the first record without a place, none has one.
    if (count != i || !may_have_number(page.first_seq + i) || !may_have_number(record->index_seq))
      continue;
    record->thread_id = thread_id;
    to += atf::encode_detail_record(to_, *record, MutableBytes(bytes_).subspan(to));
    ++count;
  }
  if (from != page.bytes.size()) {
    return Error{Code::kDamaged, "bytes behind the last record of the page"};
  }
  bytes_.resize(to);
  return {};
}

}  // namespace collect::storage
