#include "storage/thread/damage_scan.h"

#include <algorithm>
#include <vector>

#include "formats/atf/layout.h"
#include "storage/fs/kept_order.h"

namespace collect::storage {
namespace {

constexpr size_t kDamageWindowBytes = size_t{4} << 20;

using OnCandidate = std::function<Status(const Candidate&)>;

// Bytes of the section by their offset: those of one block, read where they are asked for.
class Window {
 public:
  explicit Window(const DamagedSection& section) : section_(section) {}

  // Up to `count` of them; fewer only at the end of the section, or beyond what a window holds.
  Result<Bytes> at(uint64_t offset, size_t count) {
    const uint64_t left = section_.bytes - std::min(offset, section_.bytes);
    count = static_cast<size_t>(std::min<uint64_t>({count, left, kDamageWindowBytes}));
    if (offset < begin_ || offset + count > begin_ + block_.size()) {
      block_.resize(static_cast<size_t>(std::min<uint64_t>(kDamageWindowBytes, left)));
      begin_ = offset;
      auto got = section_.file.read_at(section_.begin + offset, block_);
      block_.resize(got.ok() ? *got : 0);
      if (!got.ok()) return got.error();
      count = std::min(count, block_.size());
    }
    return Bytes(block_).subspan(static_cast<size_t>(offset - begin_), count);
  }
  // A few bytes elsewhere: a damaged file may name many places, and each shall not cost a block.
  Result<size_t> peek(uint64_t offset, MutableBytes out) {
    if (offset >= begin_ && offset + out.size() <= begin_ + block_.size()) {
      const auto from = block_.begin() + static_cast<ptrdiff_t>(offset - begin_);
      std::copy_n(from, out.size(), out.begin());
      return out.size();
    }
    return section_.file.read_at(section_.begin + offset, out);
  }

 private:
  const DamagedSection& section_;
  std::vector<uint8_t> block_;
  uint64_t begin_ = 0;
};

Status walk_events(const DamagedSection& section, Window& window, const OnCandidate& on_candidate) {
  const uint64_t events = section.bytes / atf::kEventBytes;
  for (uint64_t number = 0; number < events; ++number) {
    const uint64_t offset = number * atf::kEventBytes;
    const auto event = window.at(offset, atf::kEventBytes);
    if (!event.ok()) return event.error();
    if (event->size() < atf::kEventBytes) return {};
    if (!holds_alone(section.format, Lane::kIndex, *event)) continue;
    COLLECT_TRY(on_candidate({number, offset, atf::kEventBytes, load_le<uint64_t>(event->data())}));
  }
  return {};
}

class DetailWalk {
 public:
  DetailWalk(const DamagedSection& section, OrderBy order, Window& window)
      : section_(section), order_(order), window_(window) {}

  Status run(const OnCandidate& on_candidate) {
    uint64_t number = 0;
    uint64_t offset = 0;
    uint64_t largest_bytes = 0;
    while (offset + atf::kDetailHeaderBytes <= section_.bytes) {
      const auto length = record_at(offset);
      if (!length.ok()) return length.error();
      if (*length != 0) {
        COLLECT_TRY(on_candidate({number, offset, *length, value_, event_}));
        largest_bytes = std::max<uint64_t>(largest_bytes, *length);
        offset += *length;
        ++number;
        continue;
      }
      const auto next = next_record(offset);
      if (!next.ok()) return next.error();
      if (*next == section_.bytes) return {};
      const auto behind = record_at(*next);
      if (!behind.ok()) return behind.error();
      largest_bytes = std::max<uint64_t>(largest_bytes, *behind);
      number += is_one_record_ ? 1 : std::max<uint64_t>(1, (*next - offset) / largest_bytes);
      offset = *next;
    }
    return {};
  }

 private:
  // The length of the record there, 0 when there is none; sets value_ and event_.
  Result<uint32_t> record_at(uint64_t offset) {
    const auto header = header_at(offset);
    if (!header.ok()) return header.error();
    if (*header == 0) return uint32_t{0};
    const uint32_t length = *header;
    const uint64_t value = value_;
    const uint64_t event = event_;
    const auto payload = has_known_payload(offset, length);
    if (!payload.ok()) return payload.error();
    if (*payload) return length;
    const auto followed = is_followed(offset + length);
    if (!followed.ok()) return followed.error();
    value_ = value;
    event_ = event;
    return *followed ? length : 0;
  }
  // The length that a header which can be one says; sets value_ and event_.
  Result<uint32_t> header_at(uint64_t offset) {
    const auto bytes = window_.at(offset, atf::kDetailHeaderBytes);
    if (!bytes.ok()) return bytes.error();
    return length_of(*bytes, offset);
  }
  uint32_t length_of(Bytes bytes, uint64_t offset) {
    if (bytes.size() < atf::kDetailHeaderBytes) return 0;
    const uint8_t* at = bytes.data();
    const auto length = load_le<uint32_t>(at);
    const uint64_t left = section_.bytes - offset;
    if (length < atf::kDetailHeaderBytes || length > std::min<uint64_t>(left, kMaxPageBytes)) {
      return 0;
    }
    uint8_t header[atf::kDetailHeaderBytes];
    std::copy_n(at, sizeof header, header);
    store_le(header, uint32_t{sizeof header});  // without its payload
    if (!holds_alone(section_.format, Lane::kDetail, header)) return 0;
    uint64_t seq = load_le<uint64_t>(at + offsetof(atf::DetailHeaderV2, index_seq));
    if (section_.format.version == atf::Version::kV1) seq = static_cast<uint32_t>(seq);
    event_ = seq;
    value_ = order_ == OrderBy::kLink
                 ? seq
                 : load_le<uint64_t>(at + offsetof(atf::DetailHeaderV2, timestamp_ns));
    return length;
  }
  // FORMAT.md "Function payload": the length says which form, and in ours the length of the stack.
  Result<bool> has_known_payload(uint64_t offset, uint32_t length) {
    const uint64_t payload = length - atf::kDetailHeaderBytes;
    if (payload == atf::kTracerPayloadBytes) return true;
    if (payload < atf::kFunctionPayloadBytes) return false;
    const auto bytes = window_.at(offset + atf::kDetailHeaderBytes, atf::kFunctionPayloadBytes);
    if (!bytes.ok()) return bytes.error();
    if (bytes->size() < atf::kFunctionPayloadBytes) return false;
    const uint16_t stack = load_le<uint16_t>(bytes->data() + 96);
    return load_le<uint16_t>(bytes->data() + 98) == 0 && stack <= atf::kMaxStackBytes &&
           payload == atf::kFunctionPayloadBytes + stack;
  }
  Result<bool> is_followed(uint64_t offset) {
    if (section_.bytes - offset < atf::kDetailHeaderBytes) return true;  // the end, or a torn one
    uint8_t header[atf::kDetailHeaderBytes];
    const auto got = window_.peek(offset, header);
    if (!got.ok()) return got.error();
    return length_of(Bytes(header).first(*got), offset) != 0;
  }
  // Where the next one begins behind `offset`; the section's end when there is none.
  Result<uint64_t> next_record(uint64_t offset) {
    // A record whose header is damaged, but not its length.
    is_one_record_ = false;
    const auto header = window_.at(offset, sizeof(uint32_t));
    if (!header.ok()) return header.error();
    const uint32_t length = load_le<uint32_t>(header->data());
    if (length >= atf::kDetailHeaderBytes && length < section_.bytes - offset) {
      const auto there = record_at(offset + length);
      if (!there.ok()) return there.error();
      is_one_record_ = *there != 0;
      if (is_one_record_) return offset + length;
    }
    for (uint64_t at = offset + 1; at + atf::kDetailHeaderBytes <= section_.bytes; ++at) {
      const auto there = record_at(at);
      if (!there.ok()) return there.error();
      if (*there != 0) return at;
    }
    return section_.bytes;
  }

  const DamagedSection& section_;
  const OrderBy order_;
  Window& window_;
  uint64_t value_ = 0;
  uint64_t event_ = 0;
  bool is_one_record_ = false;  // that next_record() passed
};

Status walk(const DamagedSection& section, OrderBy order, const OnCandidate& on_candidate) {
  Window window(section);
  if (section.lane == Lane::kIndex) return walk_events(section, window, on_candidate);
  return DetailWalk(section, order, window).run(on_candidate);
}

// Makes runs of the records that stay, and says how many were between two of them.
class RunBuilder {
 public:
  using OnRun = std::function<Status(const RecordRun&)>;
  RunBuilder(const DamagedSection& section, const OnRun& on_run)
      : section_(section), on_run_(on_run) {}

  Status add(const Candidate& one) {
    largest_bytes_ = std::max<uint64_t>(largest_bytes_, one.bytes);
    if (one.number != next_number_ || one.offset != run_.offset + run_.bytes) {
      const auto position = position_of(one);
      if (!position.ok()) return position.error();
      COLLECT_TRY(finish());
      run_ = {*position, 0, one.offset, 0};
    }
    ++run_.records;
    run_.bytes += one.bytes;
    next_number_ = one.number + 1;
    next_event_ = one.event + 1;
    return {};
  }
  Status finish() { return run_.records == 0 ? Status() : on_run_(run_); }

 private:
  // Behind a hole. Events that stay rise, so it has no more detail records than events. Where no
  // link says it, rather too few: manifest and agent say how many there were, but of a number that
  // is too high an agent's next record would be taken for one that is here.
  Result<uint64_t> position_of(const Candidate& one) {
    if (section_.lane == Lane::kIndex) return one.number;
    const uint64_t end = run_.first + run_.records;
    const uint64_t hole_bytes = one.offset - (run_.offset + run_.bytes);
    const uint64_t events = one.event - std::min(next_event_, one.event);
    const uint64_t least = end + 1;
    const uint64_t most = std::max(least, end + std::min(hole_bytes / largest_bytes_, events));
    if (section_.position_by_link) {
      const auto linked = section_.position_by_link(one.event);
      if (!linked.ok()) return linked.error();
      const uint64_t possible = end + std::min(hole_bytes / atf::kDetailHeaderBytes, events);
      if (*linked && **linked >= least && **linked <= possible) return **linked;
    }
    return std::clamp(end + (one.number - next_number_), least, most);
  }

  const DamagedSection& section_;
  const OnRun& on_run_;
  RecordRun run_;
  uint64_t next_number_ = 0;  // as it was walked
  uint64_t next_event_ = 0;
  uint64_t largest_bytes_ = 0;  // of those that stay
};

}  // namespace

Result<bool> has_records_behind(const DamagedSection& section, uint64_t offset) {
  DamagedSection rest = section;
  rest.begin += offset;
  rest.bytes -= std::min(offset, section.bytes);
  const Status walked = walk(rest, OrderBy::kTime, [](const Candidate&) {
    return Status(Error{Code::kCancelled, "found"});
  });
  if (!walked.ok() && walked.code() != Code::kCancelled) return walked.error();
  return !walked.ok();
}

Status find_kept_records(const DamagedSection& section, OrderBy order,
                         const std::function<Status(const RecordRun&)>& on_run) {
  RunBuilder runs(section, on_run);
  KeptOrder kept(order == OrderBy::kLink, [&](const Candidate& one) { return runs.add(one); });
  COLLECT_TRY(walk(section, order, [&](const Candidate& one) {
    kept.survey(one.value);
    return Status();
  }));
  kept.end_survey();
  COLLECT_TRY(walk(section, order, [&](const Candidate& one) { return kept.add(one); }));
  COLLECT_TRY(kept.finish());
  return runs.finish();
}

}  // namespace collect::storage
