// Moving: to a Unit, to a position, to a time. Reads what is at the target, never all that is
// between.
#include <fmt/core.h>

#include <algorithm>

#include "formats/core/encoding/leb128.h"
#include "formats/rtc/read/reader_impl.h"

namespace collect::rtc {

Status Reader::Impl::open() {
  if (file_.size() < kMarkerBytes) {
    return Error{Code::kTruncated, fmt::format("no Unit fits in {} bytes", file_.size())};
  }
  const auto found = next_credible_marker(0);
  if (!found) return Error{Code::kDamaged, "no Marker found"};
  auto head = *read_unit_head(file_, *found);
  const uint64_t grid = head.offset + head.geometry.unit_bytes;
  if (head.offset != 0 && !head.truncated && grid < file_.size() && !is_marker(file_, grid)) {
    // Nothing confirms it. If the next one is confirmed, but neither continues its count nor begins
    // a recording, this one is someone's payload.
    const auto other = next_credible_marker(head.offset + 1);
    const auto next = other ? read_unit_head(file_, *other) : std::nullopt;
    if (next && next->count != 0 && next->count != head.count + 1 &&
        read_unit_head(file_, next->offset + next->geometry.unit_bytes)) {
      findings_.add(Severity::kWarning, Rule::kMarkerForged, head.offset,
                    "looks like a Marker, but the grid contradicts it");
      head = *next;
    }
  }
  head_ = head.offset;
  if (head_ != 0) {
    findings_.add(Severity::kWarning, Rule::kHead, 0,
                  fmt::format("{} bytes before the first Marker", head_));
  }
  enter_unit(head);
  return {};
}

uint64_t Reader::Impl::unit_count() const {
  return (file_.size() - head_ + geometry_.unit_bytes - 1) / geometry_.unit_bytes;
}

std::optional<UnitHead> Reader::Impl::first_unit_from(uint64_t offset) const {
  for (auto at = find_marker(file_, offset); at; at = find_marker(file_, *at + 1)) {
    if (auto head = read_unit_head(file_, *at)) return head;
  }
  return std::nullopt;
}

std::optional<UnitHead> Reader::Impl::last_unit_until(uint64_t offset) const {
  for (auto at = find_marker_backwards(file_, offset, head_); at;) {
    if (auto head = read_unit_head(file_, *at)) return head;
    at = find_marker_backwards(file_, *at - 1, head_);
  }
  return std::nullopt;
}

// Is before the Marker, with the Unit's streams known and nothing else.
void Reader::Impl::enter_unit(const UnitHead& head) {
  held_.reset();
  table_.forget_values();
  open_.clear();
  open_fragments_ = 0;
  for (StreamState& special : specials_) {
    special.open = false;
    special.fragments.clear();
  }
  begin_recording(head.count == 0);
  count_.reset();
  in_unit_ = false;
  after_crc_ = false;
  finished_ = false;
  skipped_.clear();
  starts_ = {};
  marker_ = kNowhere;
  unit_end_ = next_minor_ = boundary_ = kNowhere;
  pos_ = head.offset;
  unit_ = UnitInfo{};
  unit_.offset = head.offset;
  if (head.truncated) return;
  geometry_ = head.geometry;
  unit_.count = head.count;
  preview_meta(head.index_end);
}

// So that streams and dialect are known before the first frame is read. What is wrong with them is
// said when they are read.
void Reader::Impl::preview_meta(uint64_t index_end) {
  const auto gathered = gather_frames(file_, index_end, kMetaId, kMaxMetaBytes);
  if (!gathered) return;
  auto meta = parse_meta(gathered->payload);
  if (!meta) return;
  if (learn(*meta, index_end, false, true)) {
    table_is_last_meta_ = true;
    last_meta_ = gathered->payload;
  }
  const auto word = read_uleb128(file_.subspan(gathered->end));
  if (word.value == kPlatformId << 1) detect_special(gathered->end + word.size);
}

// Streams that were opened inside this Unit: those that its meta frames describe. A walk over frame
// headers, and not even that when the next Meta says that there are none.
void Reader::Impl::learn_deltas() {
  if (next_meta_is_same()) return;
  const uint64_t until = std::min<uint64_t>(unit_.offset + geometry_.unit_bytes, file_.size());
  Header header;
  for (uint64_t at = unit_.offset; at < until;) {
    if (parse(at, header) != Parsed::kFrame || (header.id == kMarkerId && at != unit_.offset)) {
      break;
    }
    if (header.id == kMetaDeltaId) {
      const auto gathered = gather_frames(file_, at, kMetaDeltaId, kMaxMetaBytes);
      if (gathered && !gathered->truncated) {
        if (auto meta = parse_meta(gathered->payload)) learn(*meta, at, true, true);
        table_is_last_meta_ = false;
      }
    }
    at += header.head_bytes + header.payload_bytes;
  }
}

bool Reader::Impl::next_meta_is_same() const {
  if (!table_is_last_meta_ || !unit_.count) return false;
  const auto head = read_unit_head(file_, unit_.offset + geometry_.unit_bytes);
  if (!head || head->truncated || head->count != *unit_.count + 1) return false;
  const auto meta = gather_frames(file_, head->index_end, kMetaId, kMaxMetaBytes);
  return meta && !meta->truncated && meta->payload == last_meta_;
}

// From the start of a Unit just entered to the last index at or before `offset`; returns where.
uint64_t Reader::Impl::enter_minor(uint64_t offset) {
  const uint64_t index_at = unit_.offset + kMarkerBytes;
  const uint64_t until = std::min<uint64_t>(unit_.offset + geometry_.unit_bytes, file_.size());
  if (offset < index_at || index_at >= until) return pos_;
  offset = std::min(offset, until - 1);
  uint64_t place = index_at + (offset - index_at) / geometry_.minor_bytes * geometry_.minor_bytes;
  while (place > index_at && !is_minor_index(file_, place, index_at)) {
    place -= geometry_.minor_bytes;
  }
  if (place == index_at) return pos_;
  const UnitInfo unit = unit_;
  on_marker(unit.offset);
  unit_ = unit;
  count_ = unit.count;
  clean_ = false;
  table_.forget_values();
  pos_ = place;
  finished_ = false;
  starts_ = {};
  starts_.begin_unit(place);
  set_minor(place);
  return place;
}

Result<uint64_t> Reader::Impl::seek_unit(uint64_t k) {
  const Error none{Code::kNotFound, fmt::format("no Unit can be read from {} on", k)};
  if (k >= unit_count()) return none;
  const uint64_t wanted = head_ + k * geometry_.unit_bytes;
  auto head = read_unit_head(file_, wanted);
  if (!head) head = first_unit_from(wanted);
  if (!head) return none;
  enter_unit(*head);
  return pos_;
}

Result<uint64_t> Reader::Impl::seek_offset(uint64_t offset) {
  auto head = last_unit_until(offset);
  if (!head) head = first_unit_from(head_);
  if (!head || offset >= file_.size()) {
    return Error{Code::kNotFound, fmt::format("nothing to read from {} on", offset)};
  }
  enter_unit(*head);
  if (head->truncated) return pos_;
  learn_deltas();
  return enter_minor(offset);
}

// The clock to search by when the caller names none.
std::string Reader::Impl::choose_clock() const {
  std::string first;
  for (const StreamInfo* info : table_.list()) {
    if (!info->is_clock || info->name.empty()) continue;
    if (has_epoch(table_.clock(info->name))) return info->name;
    if (first.empty()) first = info->name;
  }
  return first;
}

// The first value of the clock before `until` and before the next Marker, from here on.
std::optional<int64_t> Reader::Impl::first_tick(const std::string& clock, uint64_t until) {
  Frame frame;
  Object object;
  for (const uint64_t from = pos_; pos_ < until;) {
    const Step taken = step(frame, object);
    if (taken == Step::kEnd || (frame.id == kMarkerId && frame.offset > from)) break;
    if (taken != Step::kObject || object.stream->name != clock) continue;
    if (object.stream->is_clock && object.time_ns) return object.time_ns;
  }
  return std::nullopt;
}

// The last Unit whose first value of the clock is before the time: all that is wanted comes
// behind it. A Unit without a value counts as too late, which costs time and never finds too late a
// place; so does one whose Index is cut off.
uint64_t Reader::Impl::search_units(Impl& probe, int64_t time_ns, const std::string& clock) const {
  const auto is_before = [&](const UnitHead& head) {
    probe.enter_unit(head);
    const auto tick = probe.first_tick(clock, head.offset + probe.geometry_.unit_bytes);
    return tick && *tick < time_ns;
  };
  const uint64_t unit = geometry_.unit_bytes;
  uint64_t low = 0;  // always taken: the first Unit
  uint64_t high = unit_count();
  uint64_t best = head_;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const uint64_t place = head_ + middle * unit;
    auto head = read_unit_head(file_, place);
    if (!head) head = first_unit_from(place);
    if (head && is_before(*head)) {
      low = middle;
      best = head->offset;
    } else {
      high = middle;
    }
  }
  // Off the grid, where short recordings are one behind another.
  for (auto head = first_unit_from(best + 1); head && is_before(*head);
       head = first_unit_from(best + 1)) {
    best = head->offset;
  }
  return best;
}

// Searches the indices of the Unit that the reader is in front of.
uint64_t Reader::Impl::search_minors(Impl& probe, int64_t time_ns, const std::string& clock) const {
  const uint64_t index_at = unit_.offset + kMarkerBytes;
  const uint64_t until = std::min<uint64_t>(unit_.offset + geometry_.unit_bytes, file_.size());
  uint64_t low = 0;
  uint64_t high = until <= index_at ? 1 : (until - index_at - 1) / geometry_.minor_bytes + 1;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const uint64_t place = index_at + middle * geometry_.minor_bytes;
    std::optional<int64_t> tick;
    if (is_minor_index(file_, place, index_at)) {
      probe.enter_minor(place);
      tick = probe.first_tick(clock, until);
    }
    (tick && *tick < time_ns ? low : high) = middle;
  }
  return index_at + low * geometry_.minor_bytes;
}

Result<uint64_t> Reader::Impl::seek_time(int64_t time_ns, std::string_view wanted) {
  std::string clock(wanted);
  ReaderOptions options = options_;
  options.observer = nullptr;
  options.verify_crc = false;
  Impl probe(file_, options);
  COLLECT_TRY(probe.open());
  if (clock.empty()) clock = choose_clock();
  if (clock.empty()) clock = probe.choose_clock();
  if (clock.empty()) return Error{Code::kNotFound, "there is no clock to search by"};

  const auto head = read_unit_head(file_, search_units(probe, time_ns, clock));
  if (!head) return Error{Code::kNotFound, "no Unit can be read"};
  probe.enter_unit(*head);
  enter_unit(*head);
  if (!head->truncated) {
    probe.learn_deltas();
    learn_deltas();
    enter_minor(search_minors(probe, time_ns, clock));
  }
  Object object;
  while (next(object)) {
    if (!object.time_ns || *object.time_ns < time_ns) continue;
    const ClockState* own = object.stream->is_clock ? table_.clock(object.stream->name)
                                                    : table_.clock(object.stream->clock);
    if (own == nullptr || root_of(own) != root_of(table_.clock(clock))) continue;
    held_ = object;
    return object.offset;
  }
  return Error{Code::kNotFound, fmt::format("nothing has a time of {} or later", time_ns)};
}

}  // namespace collect::rtc
