// What Marker, Index, index, Meta, meta, platform and Crc change, and where reading continues after
// something that is no frame.
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128.h"
#include "formats/rtc/checksum.h"
#include "formats/rtc/read/reader_impl.h"

namespace collect::rtc {

void Reader::Impl::on_special(uint64_t at, const Header& header, Bytes payload) {
  const bool may_continue = header.id >= kIndexId && header.id <= kMetaDeltaId;
  if (header.more && !may_continue) {
    findings_.add_lazily(Severity::kWarning, Rule::kMoreFlag, at, [&] {
      return fmt::format("nothing can continue a frame of id {}", header.id);
    });
  }
  switch (header.id) {
    case kMarkerId:
      return on_marker(at);
    case kCrcId:
      return on_crc(at, payload);
    case kIndexId:
    case kMinorIndexId:
    case kMetaId:
    case kMetaDeltaId:
      break;
    default:
      return;
  }
  StreamState& special = specials_[header.id];
  if (!special.open && !header.more) return on_whole_special(header.id, at, payload);
  if (!special.open) {
    special.open = true;
    special.offset = at;
    special.size = 0;
  }
  special.size += payload.size();
  const size_t limit = header.id < kMetaId ? kMaxIndexBytes : kMaxMetaBytes;
  if (special.size <= limit && !payload.empty()) special.fragments.push_back(payload);
  if (header.more) return;
  special_payload_.clear();
  for (const Bytes part : special.fragments) {
    special_payload_.insert(special_payload_.end(), part.begin(), part.end());
  }
  special.open = false;
  special.fragments.clear();
  if (special.size > limit) {
    findings_.add(Severity::kError, header.id < kMetaId ? Rule::kIndexSyntax : Rule::kMeta,
                  special.offset, fmt::format("beyond the limit of {} bytes", limit));
    return;
  }
  on_whole_special(header.id, special.offset, special_payload_);
}

void Reader::Impl::on_whole_special(uint64_t id, uint64_t at, Bytes payload) {
  if (id == kIndexId) return on_index(at, payload);
  if (id == kMinorIndexId) return on_minor_index(at, payload);
  on_meta(at, payload, id == kMetaDeltaId);
}

void Reader::Impl::on_marker(uint64_t at) {
  if (marker_ != kNowhere && in_unit_) {
    if ((at - marker_) % geometry_.unit_bytes != 0) {
      findings_.add(Severity::kError, Rule::kMarkerGrid, at,
                    fmt::format("Marker off the grid (distance {})", at - marker_));
    }
    end_unit(false);
  }
  unit_ = UnitInfo{};
  unit_.offset = at;
  in_unit_ = true;
  after_crc_ = false;
  marker_ = at;
  ieee_until_ = published_until_ = at + kMarkerBytes;
  ieee_ = published_ = 0;
  if (options_.exact_index_targets) {
    starts_.begin_unit(at);
    starts_.add(at);
  }
  set_grid();
}

void Reader::Impl::end_unit(bool at_end_of_file) {
  if (unit_.crc == CrcState::kNone && !at_end_of_file) {
    findings_.add(Severity::kWarning, Rule::kCrcMissing, unit_.offset, "the Unit has no Crc");
  } else if (unit_.crc == CrcState::kNone) {
    findings_.add(Severity::kNote, Rule::kCrcMissing, unit_.offset,
                  "the last Unit has no Crc: it was not finished");
  }
  if (options_.observer != nullptr) options_.observer->unit_ended(unit_);
  in_unit_ = false;
}

void Reader::Impl::set_grid() {
  unit_end_ = marker_ + geometry_.unit_bytes;
  set_minor(marker_ + kMarkerBytes + geometry_.minor_bytes);
}

void Reader::Impl::set_minor(uint64_t at) {
  next_minor_ = at < marker_ + geometry_.unit_bytes ? at : kNowhere;
  set_boundary();
}

void Reader::Impl::on_index(uint64_t at, Bytes payload) {
  const auto index = parse_index(payload, true);
  if (!index) {
    findings_.add(Severity::kError, Rule::kIndexSyntax, at, "Index: " + index.error().message);
    return;
  }
  const uint64_t count = index->count.value_or(0);
  if (count_ && count != *count_ + 1) {
    if (count > *count_) {
      findings_.add(Severity::kWarning, Rule::kUnitsMissing, at,
                    fmt::format("{} Units are missing before this one", count - *count_ - 1));
    } else {
      findings_.add(Severity::kNote, Rule::kSession, at,
                    fmt::format("another recording begins, with Unit {}", count));
    }
    begin_recording(count == 0);
  }
  count_ = count;
  unit_.count = count;
  unit_.unit_bytes = index->distance_of(kIndexId);
  unit_.minor_bytes = index->distance_of(kMinorIndexId);
  const auto geometry = stated_geometry(*index);
  if (!geometry) {
    findings_.add(Severity::kWarning, Rule::kIndexSizes, at, "the Index states no size of a Unit");
  } else if (marker_ != kNowhere) {
    geometry_ = *geometry;
    set_grid();
  }
  if (!index->ascending) {
    findings_.add(Severity::kError, Rule::kIndexOrder, at, "Index not in ascending order");
  }
  check_targets(at, *index, true);
}

void Reader::Impl::on_minor_index(uint64_t at, Bytes payload) {
  const auto index = parse_index(payload, false);
  if (!index) {
    findings_.add(Severity::kError, Rule::kIndexSyntax, at, "index: " + index.error().message);
    return;
  }
  if (!index->ascending) {
    findings_.add(Severity::kError, Rule::kIndexOrder, at, "index not in ascending order");
  }
  if (marker_ != kNowhere && (at - marker_ - kMarkerBytes) % geometry_.minor_bytes != 0) {
    findings_.add_lazily(Severity::kWarning, Rule::kMinorGrid, at,
                         [] { return std::string("index off the grid"); });
  }
  check_targets(at, *index, false);
}

void Reader::Impl::check_targets(uint64_t at, const IndexEntries& index, bool major) {
  for (const IndexEntry& entry : index.entries) {
    const bool states_size = major && (entry.id == kIndexId || entry.id == kMinorIndexId);
    if (entry.distance == 0 || states_size || entry.distance > at) continue;
    const uint64_t target = at - entry.distance;
    if (target < head_ || hits(target, entry.id)) continue;
    findings_.add_lazily(Severity::kError, Rule::kIndexTarget, at, [&] {
      return fmt::format("{} entry for id {} does not hit a frame of it that can be read",
                         major ? "Index" : "index", entry.id);
    });
  }
}

bool Reader::Impl::hits(uint64_t target, uint64_t id) const {
  const auto after =
      std::ranges::upper_bound(skipped_, target, {}, [](const auto& range) { return range.first; });
  if (after != skipped_.begin() && target < std::prev(after)->second) return false;
  const bool exact = options_.exact_index_targets && in_unit_;
  if (exact && starts_.contains(target) == false) return false;
  const auto word = read_uleb128(file_.subspan(target));
  return word && word.value >> 1 == id;
}

void Reader::Impl::on_meta(uint64_t at, Bytes payload, bool delta) {
  if (!delta && table_is_last_meta_ && std::ranges::equal(payload, last_meta_)) return;
  auto meta = parse_meta(payload);
  if (!meta) {
    findings_.add(Severity::kError, Rule::kMeta, at, meta.error().message);
    return;
  }
  learn(*meta, at, delta, false);
  table_is_last_meta_ = !delta;
  if (!delta) last_meta_.assign(payload.begin(), payload.end());
}

// Whether there was nothing to complain about; `quiet` leaves the complaints for later.
bool Reader::Impl::learn(Meta& meta, uint64_t at, bool delta, bool quiet) {
  std::vector<std::string> complaints = std::move(meta.complaints);
  for (StreamInfo& info : meta.streams) {
    StreamState* stream = table_.add(std::move(info));
    if (stream == nullptr) {
      complaints.push_back(fmt::format("more than {} streams", kMaxStreams));
      break;
    }
    // Its first object cannot have begun before.
    if (delta && stream->epoch == 0) stream->epoch = epoch_;
  }
  if (!quiet) {
    for (std::string& complaint : complaints) {
      findings_.add(Severity::kWarning, Rule::kMetaEntry, at, std::move(complaint));
    }
  }
  bool clean = complaints.empty();
  if (delta) return clean;
  for (const StreamInfo* info : table_.list()) {
    if (info->clock.empty() || table_.clock(info->clock) != nullptr) continue;
    clean = false;
    if (quiet) break;
    findings_.add_lazily(Severity::kWarning, Rule::kClockUnknown, at, [&] {
      return fmt::format("{} refers to a clock \"{}\" that is not there", info->label(),
                         info->clock);
    });
  }
  return clean;
}

void Reader::Impl::detect_special(uint64_t behind_id) {
  if (options_.special) {
    special_ = *options_.special;
  }
  const Bytes bytes = file_.subspan(std::min<uint64_t>(behind_id, file_.size()));
  const auto value_at = [&](size_t at) -> std::optional<Endian> {
    if (bytes.size() < at + kPlatformPayloadBytes) return std::nullopt;
    const auto value = load_le<uint32_t>(bytes.data() + at);
    if (value == kPlatformValue) return Endian::kLittle;
    if (value == __builtin_bswap32(kPlatformValue)) return Endian::kBig;
    return std::nullopt;
  };
  const auto length = read_uleb128(bytes);
  const bool may_have_length = length && length.value >= kPlatformPayloadBytes;
  if (const auto fixed = value_at(0); fixed && options_.special != SpecialFrames::kPrefixed) {
    special_ = SpecialFrames::kFixed;
    endian_ = *fixed;
  } else if (const auto prefixed = may_have_length ? value_at(length.size) : std::nullopt;
             prefixed && options_.special != SpecialFrames::kFixed) {
    special_ = SpecialFrames::kPrefixed;
    endian_ = *prefixed;
  } else {
    findings_.add_lazily(Severity::kWarning, Rule::kPlatform, behind_id, [] {
      return std::string("the platform frame does not tell the byte order");
    });
  }
}

void Reader::Impl::on_crc(uint64_t at, Bytes payload) {
  after_crc_ = true;
  if (!in_unit_ || payload.size() < kCrcPayloadBytes) return;
  if (!options_.verify_crc) {
    unit_.crc = CrcState::kUnchecked;
    return;
  }
  uint32_t stored = load_le<uint32_t>(payload.data());
  if (endian_ == Endian::kBig) stored = __builtin_bswap32(stored);
  ieee_ = crc32_ieee(file_.subspan(ieee_until_, at - ieee_until_), ieee_);
  ieee_until_ = at;
  if (stored == ieee_) {
    unit_.crc = CrcState::kIeee;
    return;
  }
  published_ =
      published_checksum(file_.subspan(published_until_, at - published_until_), published_);
  published_until_ = at;
  unit_.crc = stored == published_ ? CrcState::kPublished : CrcState::kMismatch;
  if (unit_.crc == CrcState::kMismatch) {
    findings_.add(Severity::kError, Rule::kCrc, at, "Crc mismatch");
  }
}

// Another recording, or the same one behind a hole: nothing known before holds any more.
void Reader::Impl::begin_recording(bool clean) {
  lose_continuity(clean);
  table_.clear();
  table_is_last_meta_ = false;
}

void Reader::Impl::lose_continuity(bool clean) {
  drop_open_objects(clean ? "another recording begins" : "bytes are missing");
  ++epoch_;
  clean_ = clean;
}

// Where to continue after something at `at` that is no frame; false when there is nothing more.
bool Reader::Impl::resync(uint64_t at) {
  lose_continuity(false);
  auto to = next_credible_minor(at);
  const bool minor = to.has_value();
  if (!to) to = next_marker_after_damage(at);
  if (!to) {
    end_of_file(file_.size() - at);
    return false;
  }
  if (skipped_.size() < kMaxSkippedKept) skipped_.emplace_back(at, *to);
  findings_.add(Severity::kNote, Rule::kResync, at,
                fmt::format("{} bytes skipped, on to {}", *to - at, *to));
  if (options_.observer != nullptr) options_.observer->skipped(at, *to);
  pos_ = *to;
  if (minor) {
    unit_end_ = marker_ + geometry_.unit_bytes;
    set_minor(*to);
  }
  return true;
}

// The next place of this Unit's grid where an index of this Unit is. Of no use as long as no
// Meta says what the streams are.
std::optional<uint64_t> Reader::Impl::next_credible_minor(uint64_t at) const {
  if (!in_unit_ || table_.empty()) return std::nullopt;
  const uint64_t index_at = marker_ + kMarkerBytes;
  const uint64_t until = std::min<uint64_t>(marker_ + geometry_.unit_bytes, file_.size());
  const uint64_t steps = at < index_at ? 0 : (at - index_at) / geometry_.minor_bytes;
  for (uint64_t place = index_at + (steps + 1) * geometry_.minor_bytes; place < until;
       place += geometry_.minor_bytes) {
    if (is_minor_index(file_, place, index_at)) return place;
  }
  return std::nullopt;
}

std::optional<uint64_t> Reader::Impl::next_credible_marker(uint64_t from) {
  for (auto at = find_marker(file_, from); at; at = find_marker(file_, *at + 1)) {
    if (read_unit_head(file_, *at)) return at;
    findings_.add_lazily(Severity::kNote, Rule::kMarkerForged, *at,
                         [] { return std::string("looks like a Marker, but no Index follows"); });
  }
  return std::nullopt;
}

std::optional<uint64_t> Reader::Impl::next_marker_after_damage(uint64_t at) {
  const auto found = next_credible_marker(at + 1);
  if (!found || marker_ == kNowhere) return found;
  const uint64_t unit = geometry_.unit_bytes;
  const uint64_t grid = marker_ + ((at - marker_) / unit + 1) * unit;
  if (*found < grid && read_unit_head(file_, grid)) {
    findings_.add(Severity::kWarning, Rule::kMarkerForged, *found,
                  "looks like a Marker, but the real one is built on the grid");
    return grid;
  }
  return found;
}

}  // namespace collect::rtc
