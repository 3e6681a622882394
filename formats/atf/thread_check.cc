#include "formats/atf/thread_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/atf/joined_ranges.h"
#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
}

}  // namespace

ThreadCheck::ThreadCheck(uint32_t n, std::optional<Bytes> index, std::optional<Bytes> detail,
                         uint64_t range_bytes, const BringBytes* bring_index)
    : range_bytes_(range_bytes) {
  report_.n = n;
  report_.detail.present = detail.has_value();
  if (index) {
    index_ = IndexReader::open(*index, report_.findings, bring_index);
    if (!index_) {
      report_.rejected = true;
      return;
    }
    report_.header = index_->header();
    report_.state = index_->state();
    report_.events = index_->size();
    if (report_.state == FileState::kUnfinalized) report_.trailing_bytes = index_->trailing_bytes();
    check_platform();
  }
  if (detail) open_detail(*detail);
}

void ThreadCheck::open_detail(Bytes detail) {
  const auto add = [this](Check check, uint64_t offset, std::string sentence) {
    detail_findings_.add(Severity::kError, Lane::kDetail, check, offset, std::move(sentence));
  };
  detail_ = DetailReader::open(detail, detail_findings_);
  if (detail_ && index_ && detail_->version() != index_->version()) {
    add(Check::kDetailHeader, 5, "the detail file's version differs from the index file's");
    detail_.reset();
  }
  if (!detail_) {
    report_.detail.rejected = true;
    return;
  }
  report_.detail.header = detail_->header();
  report_.detail.state = detail_->state();
  if (index_ && detail_->header().thread_id != index_->header().thread_id) {
    add(Check::kDetailThreadId, 12,
        fmt::format("the detail file is of thread {}, the index of thread {}",
                    number(detail_->header().thread_id), number(index_->header().thread_id)));
  }
  records_.emplace(*detail_, range_bytes_);
}

std::optional<CheckRange> ThreadCheck::next() {
  if (index_ && next_event_ < index_->size()) {
    const uint64_t first = next_event_;
    // Up to a multiple in the file, so that no two ranges need the same block of it.
    const uint64_t left = range_bytes_ - index_->offset_of(first) % range_bytes_;
    const uint64_t count = std::max<uint64_t>(left / kEventBytes, 1);
    next_event_ += std::min(count, index_->size() - first);
    return EventRange{first, next_event_};
  }
  if (!records_) return std::nullopt;
  return records_->next();
}

RangeTally ThreadCheck::look(const CheckRange& range) const {
  if (const auto* events = std::get_if<EventRange>(&range)) {
    const bool functions = !functions_are_full_.load(std::memory_order_relaxed);
    return tally_events(*index_, events->first, events->end, functions);
  }
  return tally_records(index_ ? &*index_ : nullptr, *detail_, std::get<RecordRange>(range));
}

void ThreadCheck::add(RangeTally&& tally) {
  if (auto* events = std::get_if<EventTally>(&tally)) {
    events_.add(std::move(*events), index_->version());
    if (events_.functions.size() >= kMaxCountedFunctions) {
      functions_are_full_.store(true, std::memory_order_relaxed);
    }
  } else {
    details_.add(std::get<DetailTally>(std::move(tally)), detail_->version());
  }
}

ThreadReport ThreadCheck::finish() {
  if (report_.rejected) return std::move(report_);
  if (index_) conclude_events();
  if (report_.detail.present) {
    join_findings(report_.findings, std::move(detail_findings_));
    if (detail_) {
      conclude_detail(index_ ? &*index_ : nullptr, *detail_, std::move(details_), report_);
    }
  } else if (report_.links != 0) {
    add(Severity::kError, Check::kLinkNoFile, kHeaderBytes,
        number(report_.links) + " events link to details and there is no detail file");
  }
  if (index_) {
    check_detail_flag();
  } else {
    report_.rejected = report_.detail.rejected;
    report_.state = report_.detail.state;
  }
  return std::move(report_);
}

void ThreadCheck::check_platform() {
  const IndexHeader& header = index_->header();
  if (to_text(header.arch) == "unknown" || to_text(header.os) == "unknown") {
    add(Severity::kNote, Check::kPlatform, 6, "architecture or system is unknown");
  }
  if (to_text(header.clock) == "unknown") {
    add(Severity::kNote, Check::kPlatform, 16, "the clock type is unknown");
  }
}

void ThreadCheck::conclude_events() {
  if (report_.events == 0) {
    report_.checksum = index_->checksum();
  } else {
    const Bytes rest = index_->section_bytes().subspan(report_.events * kEventBytes);
    report_.checksum =
        index_->checksum(section_checksum(index_->version(), rest, events_.checksum));
    report_.first_ns = index_->time_of(0);
    report_.last_ns = index_->time_of(report_.events - 1);
    report_.min_ns = events_.min_ns;
    report_.max_ns = events_.max_ns;
  }
  report_.unknown_kinds = events_.kinds[0];
  report_.calls = events_.kinds[static_cast<size_t>(EventKind::kCall)];
  report_.returns = events_.kinds[static_cast<size_t>(EventKind::kReturn)];
  report_.exceptions = events_.kinds[static_cast<size_t>(EventKind::kException)];
  report_.backward_steps = events_.backward_steps;
  report_.links = events_.links;
  report_.max_depth = events_.max_depth;
  report_.functions = events_.functions.size();
  join_findings(report_.findings, std::move(events_.findings));
  if (report_.checksum == ChecksumState::kBad) {
    add(Severity::kError, Check::kChecksum, index_->footer_offset() + 4,
        "the checksum of the events section does not match");
  } else if (report_.checksum == ChecksumState::kOtherAlgorithm) {
    add(Severity::kNote, Check::kChecksum, index_->footer_offset() + 4,
        "the checksum is good, but of the other version's polynomial");
  }
  if (report_.trailing_bytes != 0) {
    add(Severity::kNote, Check::kFooterCount, index_->offset_of(report_.events),
        number(report_.trailing_bytes) + " bytes of a half-written event are not read");
  }
  summarize_events();
}

void ThreadCheck::summarize_events() {
  if (events_.first_unknown_kind) {
    const uint64_t offset = index_->offset_of(*events_.first_unknown_kind) +
                            (index_->version() == Version::kV1 ? 20 : 24);
    add(Severity::kError, Check::kKind, offset,
        fmt::format("{} events of unknown kind, the first is event {}",
                    number(report_.unknown_kinds), number(*events_.first_unknown_kind)));
  }
  if (events_.first_step_back) {
    add(Severity::kError, Check::kTimeOrder, index_->offset_of(*events_.first_step_back),
        fmt::format("time goes back {} times, first at event {}", number(report_.backward_steps),
                    number(*events_.first_step_back)));
  }
  if (events_.first_bad_link) {
    add(Severity::kError, Check::kLinkOrder, index_->offset_of(*events_.first_bad_link),
        "detail_seq values are not 0, 1, 2, ..., first at event " +
            number(*events_.first_bad_link));
  }
  if (events_.first_reserved) {
    add(Severity::kNote, Check::kReserved, index_->offset_of(*events_.first_reserved) + 25,
        fmt::format("{} events with reserved bytes that are not zero, the first is event {}",
                    number(events_.reserved), number(*events_.first_reserved)));
  }
  if (!index_->footer() || report_.events == 0 || index_->footer()->event_count != report_.events) {
    return;
  }
  if (index_->footer()->time_start_ns != *report_.first_ns ||
      index_->footer()->time_end_ns != *report_.last_ns) {
    add(Severity::kWarning, Check::kTimeRange, index_->footer_offset() + 16,
        "the footer's times are not those of the first and the last event");
  }
}

// The flag is a hint that published writers set at the very end; only a finalized header must
// agree.
void ThreadCheck::check_detail_flag() {
  if (report_.state != FileState::kFinalized) return;
  if (index_->has_detail_flag() == report_.detail.present) return;
  add(Severity::kWarning, Check::kDetailFlag, 8,
      report_.detail.present ? "there is a detail file and the has_detail flag is 0"
                             : "the has_detail flag is set and there is no detail file");
}

}  // namespace collect::atf
