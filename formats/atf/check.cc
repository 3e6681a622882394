#include "formats/atf/check.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "formats/atf/detail_check.h"
#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

constexpr uint64_t kBlockEvents = 4096;  // 128 KiB: stays in a core's own cache

std::string number(uint64_t value) {
  return std::to_string(value);
}

// Of a version 2 event: the kind and its seven reserved bytes are one word.
bool has_reserved_bits(const uint8_t* event) {
  return load_le<uint64_t>(event + offsetof(IndexEventV2, event_kind)) >> 8 != 0;
}

// Counts distinct ids. A small direct-mapped cache in front of the set answers nearly every event
// of a real trace, where few functions make most of the calls.
class FunctionCounter {
 public:
  void add(uint64_t id) {
    const size_t slot = (id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits);
    if (cached_[slot] && cache_[slot] == id) return;
    cache_[slot] = id;
    cached_[slot] = true;
    if (seen_.size() < kMaxCountedFunctions) seen_.insert(id);
  }
  uint64_t count() const { return seen_.size(); }

 private:
  static constexpr int kCacheBits = 12;
  std::array<uint64_t, size_t{1} << kCacheBits> cache_{};
  std::array<bool, size_t{1} << kCacheBits> cached_{};
  std::unordered_set<uint64_t> seen_;
};

class ThreadCheck {
 public:
  ThreadCheck(uint32_t n, Bytes index, std::optional<Bytes> detail)
      : index_bytes_(index), detail_bytes_(detail) {
    report_.n = n;
    report_.detail.present = detail.has_value();
  }

  ThreadReport run();

 private:
  void check_events();
  template <Version kVersion>
  void walk_events();
  void check_thread_id(uint64_t seq, const IndexEvent& event);
  void summarize_events();
  void check_platform();
  void check_detail_flag();

  void add(Severity severity, Lane lane, Check check, uint64_t offset, std::string sentence) {
    report_.findings.add(severity, lane, check, offset, std::move(sentence));
  }

  Bytes index_bytes_;
  std::optional<Bytes> detail_bytes_;
  std::optional<IndexReader> index_;
  ThreadReport report_;
  FunctionCounter functions_;

  // Of the event pass: where something happened first, so that one finding names the place.
  std::optional<uint64_t> first_step_back_, first_unknown_kind_, first_bad_link_, first_reserved_;
  uint64_t reserved_ = 0;
};

ThreadReport ThreadCheck::run() {
  index_ = IndexReader::open(index_bytes_, report_.findings);
  if (!index_) {
    report_.rejected = true;
    return std::move(report_);
  }
  report_.header = index_->header();
  report_.state = index_->state();
  report_.events = index_->size();
  if (index_->state() == FileState::kUnfinalized) report_.trailing_bytes = index_->trailing_bytes();
  check_platform();
  check_events();
  if (report_.checksum == ChecksumState::kBad) {
    add(Severity::kError, Lane::kIndex, Check::kChecksum, index_->footer_offset() + 4,
        "the checksum of the events section does not match");
  } else if (report_.checksum == ChecksumState::kOtherAlgorithm) {
    add(Severity::kNote, Lane::kIndex, Check::kChecksum, index_->footer_offset() + 4,
        "the checksum is good, but of the other version's polynomial");
  }
  if (report_.trailing_bytes != 0) {
    add(Severity::kNote, Lane::kIndex, Check::kFooterCount, index_->offset_of(report_.events),
        number(report_.trailing_bytes) + " bytes of a half-written event are not read");
  }
  summarize_events();
  if (detail_bytes_) {
    check_detail_file(*detail_bytes_, &*index_, report_);
  } else if (report_.links != 0) {
    add(Severity::kError, Lane::kIndex, Check::kLinkNoFile, kHeaderBytes,
        number(report_.links) + " events link to details and there is no detail file");
  }
  check_detail_flag();
  return std::move(report_);
}

void ThreadCheck::check_platform() {
  const IndexHeader& header = index_->header();
  if (to_text(header.arch) == "unknown" || to_text(header.os) == "unknown") {
    add(Severity::kNote, Lane::kIndex, Check::kPlatform, 6, "architecture or system is unknown");
  }
  if (to_text(header.clock) == "unknown") {
    add(Severity::kNote, Lane::kIndex, Check::kPlatform, 16, "the clock type is unknown");
  }
}

// Counts in locals, which the compiler keeps in registers; what happens rarely is a member.
template <Version kVersion>
void ThreadCheck::walk_events() {
  constexpr size_t kKinds = 4;  // 0 stands for every unknown one
  uint64_t kinds[kKinds] = {};
  uint64_t previous = index_->time_of(0), least = previous, most = previous;
  uint64_t links = 0;
  uint32_t depth = 0;
  const uint8_t* const section = index_->section_bytes().data();
  const auto look = [&](uint64_t seq, const IndexEvent& event) {
    const size_t kind = event.kind_raw < kKinds ? event.kind_raw : 0;
    if (kinds[kind]++ == 0 && kind == 0) first_unknown_kind_ = seq;
    const uint64_t time = event.timestamp_ns;
    if (time < previous && report_.backward_steps++ == 0) first_step_back_ = seq;
    previous = time;
    least = std::min(least, time);
    most = std::max(most, time);
    functions_.add(event.function_id);
    if (event.detail_seq != kNoDetail) {
      if (event.detail_seq != links && !first_bad_link_) first_bad_link_ = seq;
      ++links;
    }
    if constexpr (kVersion == Version::kV1) {
      depth = std::max(depth, event.call_depth);
      if (event.thread_id != index_->header().thread_id) check_thread_id(seq, event);
    } else {
      const uint8_t* at = section + seq * kEventBytes;
      if (has_reserved_bits(at) && reserved_++ == 0) first_reserved_ = seq;
    }
  };
  // Memory is the limit: what the checksum brought into the cache is looked at right away.
  uint32_t checksum = 0;
  for (uint64_t first = 0; first < report_.events; first += kBlockEvents) {
    const EventSpan block = index_->events(first, kBlockEvents);
    checksum = section_checksum(kVersion, block.bytes(), checksum);
    block.for_each(look);
  }
  const Bytes rest = index_->section_bytes().subspan(report_.events * kEventBytes);
  report_.checksum = index_->checksum(section_checksum(kVersion, rest, checksum));
  report_.unknown_kinds = kinds[0];
  report_.calls = kinds[static_cast<size_t>(EventKind::kCall)];
  report_.returns = kinds[static_cast<size_t>(EventKind::kReturn)];
  report_.exceptions = kinds[static_cast<size_t>(EventKind::kException)];
  report_.min_ns = least;
  report_.max_ns = most;
  report_.links = links;
  report_.max_depth = depth;
}

void ThreadCheck::check_thread_id(uint64_t seq, const IndexEvent& event) {
  report_.findings.add_lazily(
      Severity::kWarning, Lane::kIndex, Check::kThreadId, index_->offset_of(seq) + 16, [&] {
        return "event " + number(seq) + " carries thread id " + number(event.thread_id) +
               ", the header " + number(report_.header->thread_id);
      });
}

void ThreadCheck::check_events() {
  if (report_.events == 0) {
    report_.checksum = index_->checksum();
    return;
  }
  report_.first_ns = index_->time_of(0);
  report_.last_ns = index_->time_of(report_.events - 1);
  if (index_->version() == Version::kV1) {
    walk_events<Version::kV1>();
  } else {
    walk_events<Version::kV2>();
  }
  report_.functions = functions_.count();
}

void ThreadCheck::summarize_events() {
  if (first_unknown_kind_) {
    const uint64_t offset =
        index_->offset_of(*first_unknown_kind_) + (index_->version() == Version::kV1 ? 20 : 24);
    add(Severity::kError, Lane::kIndex, Check::kKind, offset,
        number(report_.unknown_kinds) + " events of unknown kind, the first is event " +
            number(*first_unknown_kind_));
  }
  if (first_step_back_) {
    add(Severity::kError, Lane::kIndex, Check::kTimeOrder, index_->offset_of(*first_step_back_),
        "time goes back " + number(report_.backward_steps) + " times, first at event " +
            number(*first_step_back_));
  }
  if (first_bad_link_) {
    add(Severity::kError, Lane::kIndex, Check::kLinkOrder, index_->offset_of(*first_bad_link_),
        "detail_seq values are not 0, 1, 2, ..., first at event " + number(*first_bad_link_));
  }
  if (first_reserved_) {
    add(Severity::kNote, Lane::kIndex, Check::kReserved, index_->offset_of(*first_reserved_) + 25,
        number(reserved_) + " events with reserved bytes that are not zero, the first is event " +
            number(*first_reserved_));
  }
  if (!index_->footer() || report_.events == 0 || index_->footer()->event_count != report_.events) {
    return;
  }
  if (index_->footer()->time_start_ns != *report_.first_ns ||
      index_->footer()->time_end_ns != *report_.last_ns) {
    add(Severity::kWarning, Lane::kIndex, Check::kTimeRange, index_->footer_offset() + 16,
        "the footer's times are not those of the first and the last event");
  }
}

// The flag is a hint that published writers set at the very end; only a finalized header must
// agree.
void ThreadCheck::check_detail_flag() {
  if (report_.state != FileState::kFinalized) return;
  if (index_->has_detail_flag() == report_.detail.present) return;
  add(Severity::kWarning, Lane::kIndex, Check::kDetailFlag, 8,
      report_.detail.present ? "there is a detail file and the has_detail flag is 0"
                             : "the has_detail flag is set and there is no detail file");
}

}  // namespace

std::string_view to_text(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kRecovered:
      return "recovered";
    case Grade::kDamaged:
      return "damaged";
    case Grade::kPartial:
      return "partial";
    case Grade::kRejected:
      return "rejected";
  }
  return "unknown";
}

ThreadReport check_thread(uint32_t n, Bytes index, std::optional<Bytes> detail) {
  return ThreadCheck(n, index, detail).run();
}

ThreadReport check_detail_alone(uint32_t n, Bytes detail) {
  ThreadReport report;
  report.n = n;
  check_detail_file(detail, nullptr, report);
  report.rejected = report.detail.rejected;
  report.state = report.detail.state;
  return report;
}

Grade grade_of(std::span<const ThreadReport> threads) {
  size_t readable = 0;
  bool damaged = false;
  bool recovered = false;
  for (const ThreadReport& thread : threads) {
    if (thread.rejected) continue;
    ++readable;
    damaged = damaged || thread.findings.errors() != 0;
    recovered = recovered || thread.state != FileState::kFinalized ||
                (thread.detail.present && !thread.detail.rejected &&
                 thread.detail.state != FileState::kFinalized);
  }
  if (readable == 0) return Grade::kRejected;
  if (readable < threads.size()) return Grade::kPartial;
  if (damaged) return Grade::kDamaged;
  return recovered ? Grade::kRecovered : Grade::kOk;
}

}  // namespace collect::atf
