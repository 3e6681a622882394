#include "formats/atf/check.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "formats/atf/detail_check.h"

namespace collect::atf {
namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
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
  void check_event(uint64_t seq, const IndexEvent& event, bool v1);
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
  uint64_t previous_ns_ = 0;
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
  report_.checksum = index_->checksum();
  if (index_->state() == FileState::kUnfinalized) report_.trailing_bytes = index_->trailing_bytes();
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
  check_platform();
  check_events();
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

inline void ThreadCheck::check_event(uint64_t seq, const IndexEvent& event, bool v1) {
  switch (event.kind) {
    case EventKind::kCall:
      ++report_.calls;
      break;
    case EventKind::kReturn:
      ++report_.returns;
      break;
    case EventKind::kException:
      ++report_.exceptions;
      break;
    default:
      if (report_.unknown_kinds++ == 0) first_unknown_kind_ = seq;
  }
  if (event.timestamp_ns < previous_ns_ && report_.backward_steps++ == 0) first_step_back_ = seq;
  previous_ns_ = event.timestamp_ns;
  report_.min_ns = std::min(*report_.min_ns, event.timestamp_ns);
  report_.max_ns = std::max(*report_.max_ns, event.timestamp_ns);
  functions_.add(event.function_id);
  if (event.detail_seq != kNoDetail) {
    if (event.detail_seq != report_.links && !first_bad_link_) first_bad_link_ = seq;
    ++report_.links;
  }
  if (!v1) return;
  report_.max_depth = std::max<uint64_t>(report_.max_depth, event.call_depth);
  if (event.thread_id == report_.header->thread_id) return;
  report_.findings.add_lazily(
      Severity::kWarning, Lane::kIndex, Check::kThreadId, index_->offset_of(seq) + 16, [&] {
        return "event " + number(seq) + " carries thread id " + number(event.thread_id) +
               ", the header " + number(report_.header->thread_id);
      });
}

void ThreadCheck::check_events() {
  if (report_.events == 0) return;
  report_.first_ns = report_.min_ns = report_.max_ns = previous_ns_ = index_->time_of(0);
  report_.last_ns = index_->time_of(report_.events - 1);
  const bool v1 = index_->version() == Version::kV1;
  index_->events().for_each(
      [&](uint64_t seq, const IndexEvent& event) { check_event(seq, event, v1); });
  report_.functions = functions_.count();
  if (v1) return;
  const uint8_t* at = index_->events().bytes().data();
  for (uint64_t seq = 0; seq < report_.events; ++seq, at += kEventBytes) {
    // The kind and its seven reserved bytes as one word.
    if (load_le<uint64_t>(at + offsetof(IndexEventV2, event_kind)) >> 8 == 0) continue;
    if (reserved_++ == 0) first_reserved_ = seq;
  }
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
