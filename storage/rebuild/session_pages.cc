#include "storage/rebuild/session_pages.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <queue>
#include <utility>

#include "formats/atf/headers.h"
#include "formats/core/crc32.h"
#include "storage/container/packed_lanes.h"

namespace collect::storage {
namespace {

constexpr uint64_t kPageEvents = 2048;
constexpr size_t kPageDetailBytes = 64 << 10;
// Read at once of a detail lane: a page of records that we write.
constexpr size_t kDetailReadBytes = kPageDetailBytes + atf::kMaxDetailBytes;
static_assert(offsetof(atf::DetailHeaderV1, timestamp_ns) ==
              offsetof(atf::DetailHeaderV2, timestamp_ns));

uint64_t time_of(Lane lane, const uint8_t* record) {
  return load_le<uint64_t>(
      record + (lane == Lane::kIndex ? 0 : offsetof(atf::DetailHeaderV2, timestamp_ns)));
}

// Records of a file that stays open as long as its lane is read.
class FileRecords final : public RecordSource {
 public:
  explicit FileRecords(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Result<Bytes> read(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) override {
    buffer.resize(bytes);
    const auto got = file_->read_at(atf::kEventsOffset + offset, buffer);
    if (!got.ok()) return got.error();
    return Bytes(buffer).first(*got);
  }

 private:
  const std::unique_ptr<File> file_;
};

struct Ends {
  uint64_t records = 0;
  uint64_t section_bytes = 0;
  uint32_t checksum = 0;
};

// What the footer says, where the header agrees with it.
std::optional<Ends> ends_of(Lane lane, Bytes header, Bytes footer, uint64_t section_bytes) {
  if (lane == Lane::kIndex) {
    const auto head = atf::decode_index_header(header);
    const auto tail = atf::decode_index_footer(footer);
    const bool agree = head.ok() && tail && tail->bytes_written == section_bytes &&
                       head->footer_offset == atf::kEventsOffset + section_bytes &&
                       head->event_count == tail->event_count;
    return agree ? std::optional(Ends{tail->event_count, section_bytes, tail->checksum})
                 : std::nullopt;
  }
  const auto head = atf::decode_detail_header(header);
  const auto tail = atf::decode_detail_footer(footer);
  const bool agree = head.ok() && tail && tail->bytes_length == section_bytes &&
                     head->bytes_length == section_bytes && head->event_count == tail->event_count;
  return agree ? std::optional(Ends{tail->event_count, section_bytes, tail->checksum})
               : std::nullopt;
}

}  // namespace

Result<Bytes> MappedRecords::read(uint64_t offset, size_t bytes, std::vector<uint8_t>&) {
  const auto from = static_cast<size_t>(std::min<uint64_t>(offset, records_.size()));
  return records_.subspan(from, std::min(bytes, records_.size() - from));
}

LanePages::LanePages(LaneSource source, const Manifest& manifest, uint64_t page_bytes)
    : source_(std::move(source)), page_bytes_(page_bytes) {
  page_.stream_id = source_.stream_id;
  page_.lane = source_.lane;
  for (const Gap& gap : manifest.gaps) {
    if (gap.thread != source_.thread || gap.lane != source_.lane) continue;
    Loss& loss = losses_[gap.before_seq];
    if (loss.count == 0) loss.first_ns = gap.first_ns;
    loss.count += gap.lost;
    loss.reasons |= gap.reasons;
    loss.last_ns = gap.last_ns;
  }
}

Result<std::optional<uint64_t>> LanePages::next_ns() {
  const size_t header = source_.lane == Lane::kIndex ? atf::kEventBytes : atf::kDetailHeaderBytes;
  if (source_.bytes - offset_ >= header) {
    const auto head = source_.records->read(offset_, header, head_);
    if (!head.ok()) return head.error();
    if (head->size() == header) return std::optional(time_of(source_.lane, head->data()));
  }
  // What was lost behind the last record has the time of that.
  const bool lost_at_end = losses_.contains(page_.first_seq + page_.record_count);
  return lost_at_end ? std::optional(page_.last_ns) : std::nullopt;
}

Result<std::optional<Page>> LanePages::next(std::vector<uint8_t>& buffer) {
  page_.first_seq += page_.record_count;
  page_.record_count = 0;
  page_.bytes = {};
  page_.lost_reasons = 0;
  if (const auto loss = losses_.find(page_.first_seq); loss != losses_.end()) {
    page_.lost_total += loss->second.count;
    page_.lost_reasons = loss->second.reasons;
    page_.lost_first_ns = loss->second.first_ns;
    page_.lost_last_ns = loss->second.last_ns;
    losses_.erase(loss);
  }
  const auto after = losses_.upper_bound(page_.first_seq);
  const uint64_t stop = after == losses_.end() ? UINT64_MAX : after->first;
  COLLECT_TRY(source_.lane == Lane::kIndex ? take_events(stop, buffer)
                                           : take_details(stop, buffer));
  offset_ += page_.bytes.size();
  if (page_.record_count == 0 && page_.lost_reasons == 0) return std::optional<Page>();
  return std::optional(page_);
}

Status LanePages::take_events(uint64_t stop, std::vector<uint8_t>& buffer) {
  const uint64_t left = (source_.bytes - offset_) / atf::kEventBytes;
  const uint64_t most =
      page_bytes_ == 0
          ? kPageEvents
          : (page_bytes_ - (atf::kEventsOffset + offset_) % page_bytes_) / atf::kEventBytes;
  const uint64_t wanted = std::min({most, left, stop - page_.first_seq});
  if (wanted == 0) return {};
  const auto got =
      source_.records->read(offset_, static_cast<size_t>(wanted * atf::kEventBytes), buffer);
  if (!got.ok()) return got.error();
  const size_t count = got->size() / atf::kEventBytes;
  if (count == 0) return {};
  page_.bytes = got->first(count * atf::kEventBytes);
  page_.record_count = static_cast<uint32_t>(count);
  page_.first_ns = time_of(Lane::kIndex, page_.bytes.data());
  page_.last_ns = time_of(Lane::kIndex, page_.bytes.data() + (count - 1) * atf::kEventBytes);
  return {};
}

Status LanePages::take_details(uint64_t stop, std::vector<uint8_t>& buffer) {
  size_t wanted = kDetailReadBytes;
  for (bool again = true; again;) {
    again = false;
    const auto got = source_.records->read(
        offset_, static_cast<size_t>(std::min<uint64_t>(wanted, source_.bytes - offset_)), buffer);
    if (!got.ok()) return got.error();
    size_t at = 0;
    while (page_.first_seq + page_.record_count < stop && at < kPageDetailBytes) {
      if (got->size() - at < atf::kDetailHeaderBytes) break;
      const uint8_t* record = got->data() + at;
      const uint32_t length = load_le<uint32_t>(record);
      if (length < atf::kDetailHeaderBytes || length > source_.bytes - offset_ - at) break;
      if (length > got->size() - at) {
        // Only the first of a page is worth another look.
        again = at == 0 && wanted < length;
        wanted = std::max<size_t>(wanted, length);
        break;
      }
      page_.last_ns = time_of(Lane::kDetail, record);
      if (page_.record_count++ == 0) page_.first_ns = page_.last_ns;
      at += length;
    }
    page_.bytes = got->first(at);
  }
  return {};
}

Result<LaneInput> open_lane(Fs& fs, const std::string& path, Lane lane) {
  auto file = open_thread_file(fs, path);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  std::array<uint8_t, atf::kHeaderBytes> header{}, footer{};
  const auto head_bytes = (*file)->read_at(0, header);
  if (!head_bytes.ok()) return head_bytes.error();
  const Bytes head = Bytes(header).first(*head_bytes);
  LaneInput input;
  uint64_t events_offset = 0;
  if (lane == Lane::kIndex) {
    const auto decoded = atf::decode_index_header(head);
    if (!decoded.ok())
      return Error{decoded.code(), fmt::format("{}: {}", path, decoded.error().message)};
    input.version = decoded->version;
    input.thread_id = decoded->thread_id;
    events_offset = decoded->events_offset;
  } else {
    const auto decoded = atf::decode_detail_header(head);
    if (!decoded.ok())
      return Error{decoded.code(), fmt::format("{}: {}", path, decoded.error().message)};
    input.version = decoded->version;
    input.thread_id = decoded->thread_id;
    events_offset = decoded->events_offset;
  }
  if (events_offset != atf::kEventsOffset) {
    return Error{Code::kDamaged, fmt::format("{}: its records begin at {}", path, events_offset)};
  }
  input.source.lane = lane;
  input.source.bytes = *size - atf::kEventsOffset;
  if (input.source.bytes >= atf::kFooterBytes) {
    const uint64_t section = input.source.bytes - atf::kFooterBytes;
    const auto tail = (*file)->read_at(*size - atf::kFooterBytes, footer);
    if (!tail.ok()) return tail.error();
    if (const auto ends = ends_of(lane, head, Bytes(footer).first(*tail), section)) {
      input.source.bytes = ends->section_bytes;
      input.checksum = ends->checksum;
      input.count = ends->records;
    }
  }
  input.source.records = std::make_unique<FileRecords>(std::move(*file));
  return input;
}

Manifest manifest_of_files(const Manifest& manifest) {
  Manifest converted = manifest;
  converted.containers.clear();
  converted.containers_removed = 0;
  converted.passthrough_streams.clear();
  for (ManifestThread& thread : converted.threads) {
    thread.stream_id = thread.id + 1;
    thread.index_next = thread.events;
    thread.detail_next = thread.detail_records;
  }
  return converted;
}

Status take_in_time_order(std::vector<LanePages>& lanes,
                          const std::function<Status(const Page&)>& take) {
  using Next = std::pair<uint64_t, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> order;
  const auto put_in_order = [&](size_t at) {
    const auto ns = lanes[at].next_ns();
    if (!ns.ok()) return Status(ns.error());
    if (*ns) order.emplace(**ns, at);
    return Status();
  };
  for (size_t at = 0; at < lanes.size(); ++at) COLLECT_TRY(put_in_order(at));
  std::vector<uint8_t> buffer;
  while (!order.empty()) {
    const size_t at = order.top().second;
    order.pop();
    auto page = lanes[at].next(buffer);
    if (!page.ok()) return page.error();
    if (!*page) continue;
    (*page)->bytes_crc32c = crc32c((*page)->bytes);
    COLLECT_TRY(take(**page));
    COLLECT_TRY(put_in_order(at));
  }
  return {};
}

}  // namespace collect::storage
