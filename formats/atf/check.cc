#include "formats/atf/check.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "formats/atf/payload.h"

namespace collect::atf {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }

// Counts distinct ids. A small direct-mapped cache in front of the set answers nearly every event of
// a real trace, where few functions make most of the calls.
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
  ThreadReport run_detail_alone();

 private:
  void check_events();
  void check_event(uint64_t seq, const IndexEvent& event, bool v1);
  void summarize_events();
  void check_platform();
  void check_detail();
  void check_record(const DetailRecord& record, uint64_t seq, uint64_t offset);
  void check_payload(const DetailRecord& record, uint64_t offset,
                     const std::optional<IndexEvent>& event);
  void check_detail_counts(const DetailReader& reader);
  void check_detail_flag();

  void add(Severity severity, Lane lane, Check check, uint64_t offset, std::string sentence) {
    report_.findings.add(severity, lane, check, offset, std::move(sentence));
  }

  // For findings that every record may cause: the sentence is built only while the list has room.
  template <class MakeSentence>
  void add_of_record(Severity severity, Lane lane, Check check, uint64_t offset,
                     MakeSentence make) {
    if (report_.findings.listing()) {
      add(severity, lane, check, offset, make());
    } else {
      report_.findings.count(severity);
    }
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

  // Of the record pass.
  uint64_t min_index_seq_ = UINT64_MAX;
  uint64_t max_index_seq_ = 0;
  uint64_t first_record_ns_ = 0;
  uint64_t last_record_ns_ = 0;
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
  check_detail();
  check_detail_flag();
  return std::move(report_);
}

ThreadReport ThreadCheck::run_detail_alone() {
  check_detail();
  report_.rejected = report_.detail.rejected;
  report_.state = report_.detail.state;
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
    case EventKind::kCall: ++report_.calls; break;
    case EventKind::kReturn: ++report_.returns; break;
    case EventKind::kException: ++report_.exceptions; break;
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
  add_of_record(
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
    const uint64_t offset = index_->offset_of(*first_unknown_kind_) +
                            (index_->version() == Version::kV1 ? 20 : 24);
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
  if (!index_->footer() || report_.events == 0 ||
      index_->footer()->event_count != report_.events) {
    return;
  }
  if (index_->footer()->time_start_ns != *report_.first_ns ||
      index_->footer()->time_end_ns != *report_.last_ns) {
    add(Severity::kWarning, Lane::kIndex, Check::kTimeRange, index_->footer_offset() + 16,
        "the footer's times are not those of the first and the last event");
  }
}

void ThreadCheck::check_detail() {
  if (!detail_bytes_) {
    if (report_.links != 0) {
      add(Severity::kError, Lane::kIndex, Check::kLinkNoFile, kHeaderBytes,
          number(report_.links) + " events link to details and there is no detail file");
    }
    return;
  }
  auto reader = DetailReader::open(*detail_bytes_, report_.findings);
  if (reader && index_ && reader->version() != index_->version()) {
    add(Severity::kError, Lane::kDetail, Check::kDetailHeader, 5,
        "the detail file's version differs from the index file's");
    reader.reset();
  }
  if (!reader) {
    report_.detail.rejected = true;
    return;
  }
  report_.detail.header = reader->header();
  report_.detail.state = reader->state();
  if (index_ && reader->header().thread_id != index_->header().thread_id) {
    add(Severity::kError, Lane::kDetail, Check::kDetailThreadId, 12,
        "the detail file is of thread " + number(reader->header().thread_id) +
            ", the index of thread " + number(index_->header().thread_id));
  }
  DetailCursor cursor = reader->records();
  for (;;) {
    const uint64_t offset = cursor.offset();
    const uint64_t seq = cursor.seq();
    const auto record = cursor.next();
    if (!record) break;
    check_record(*record, seq, offset);
  }
  report_.detail.records = cursor.seq();
  report_.detail.bytes = cursor.consumed_bytes();
  report_.detail.trailing_bytes = reader->section_bytes() - cursor.consumed_bytes();
  check_detail_counts(*reader);
}

void ThreadCheck::check_record(const DetailRecord& record, uint64_t seq, uint64_t offset) {
  if (seq == 0) first_record_ns_ = record.timestamp_ns;
  last_record_ns_ = record.timestamp_ns;
  min_index_seq_ = std::min(min_index_seq_, record.index_seq);
  max_index_seq_ = std::max(max_index_seq_, record.index_seq);
  auto& types = report_.detail.types;
  const auto type = static_cast<uint16_t>(record.type);
  if (types.size() < kMaxCountedTypes || types.contains(type)) {
    ++types[type];
  } else {
    ++types.rbegin()->second;
  }
  if (!index_) {
    check_payload(record, offset, std::nullopt);
    return;
  }
  const auto event = index_->get(record.index_seq);
  if (!event) {
    add_of_record(Severity::kWarning, Lane::kDetail, Check::kLinkPast, offset + 8, [&] {
      return "detail " + number(seq) + " points to event " + number(record.index_seq) + ", past the index";
    });
  } else if (event->detail_seq != seq) {
    add_of_record(Severity::kError, Lane::kDetail, Check::kLinkBack, offset + 8, [&] {
      const std::string to =
          event->detail_seq == kNoDetail ? "none" : "detail " + number(event->detail_seq);
      return "detail " + number(seq) + " points to event " + number(record.index_seq) + ", which points to " + to;
    });
  } else if (event->timestamp_ns != record.timestamp_ns) {
    add_of_record(Severity::kWarning, Lane::kDetail, Check::kLinkTime, offset + 16, [&] {
      return "detail " + number(seq) + " has another time than its event " + number(record.index_seq);
    });
  }
  if (index_->version() == Version::kV1 && record.thread_id != report_.header->thread_id) {
    add_of_record(Severity::kWarning, Lane::kDetail, Check::kThreadId, offset + 12, [&] {
      return "detail " + number(seq) + " carries thread id " + number(record.thread_id);
    });
  }
  check_payload(record, offset, event);
}

void ThreadCheck::check_payload(const DetailRecord& record, uint64_t offset,
                                const std::optional<IndexEvent>& event) {
  DetailReport& detail = report_.detail;
  const bool function =
      record.type == DetailType::kFunctionCall || record.type == DetailType::kFunctionReturn;
  const auto payload = function ? decode_function_payload(record.payload) : std::nullopt;
  if (!payload) {
    ++detail.opaque_payloads;
    if (function) {
      add_of_record(Severity::kNote, Lane::kDetail, Check::kPayload, offset + kDetailHeaderBytes,
                    [&] {
                      return "a function record with " + number(record.payload.size()) +
                             " payload bytes that have neither known form";
                    });
    }
    return;
  }
  ++(payload->form == PayloadForm::kDocumented ? detail.documented_payloads
                                               : detail.tracer_payloads);
  if (!event) return;
  if (payload->function_id != event->function_id) {
    add_of_record(Severity::kWarning, Lane::kDetail, Check::kPayloadFunction,
                  offset + kDetailHeaderBytes, [&] {
                    return "the payload names another function than event " +
                           number(record.index_seq);
                  });
  }
  const bool call = record.type == DetailType::kFunctionCall;
  if ((call && event->kind == EventKind::kReturn) || (!call && event->kind == EventKind::kCall)) {
    add_of_record(Severity::kWarning, Lane::kDetail, Check::kRecordType, offset + 4, [&] {
      return "the record's type does not fit the kind of event " + number(record.index_seq);
    });
  }
}

void ThreadCheck::check_detail_counts(const DetailReader& reader) {
  DetailReport& detail = report_.detail;
  const uint64_t end = reader.header().events_offset + reader.section_bytes();
  const bool finalized = reader.footer().has_value();
  if (index_ && report_.links != detail.records) {
    add(finalized ? Severity::kError : Severity::kWarning, Lane::kDetail, Check::kLinkCount, end,
        number(detail.records) + " details, " + number(report_.links) + " links from the index");
  }
  if (detail.trailing_bytes != 0) {
    add(finalized ? Severity::kError : Severity::kNote, Lane::kDetail, Check::kDetailWalk,
        reader.header().events_offset + detail.bytes,
        number(detail.trailing_bytes) + " bytes that are no whole record are not read");
  }
  if (!finalized) return;
  detail.checksum = reader.checksum();
  if (detail.checksum == ChecksumState::kBad) {
    add(Severity::kError, Lane::kDetail, Check::kChecksum, end + 4,
        "the checksum of the records section does not match");
  }
  if (reader.bytes_after_footer() != 0) {
    add(Severity::kWarning, Lane::kDetail, Check::kAfterFooter, end + kFooterBytes,
        number(reader.bytes_after_footer()) + " bytes after the footer are not read");
  }
  const DetailFileHeader& header = reader.header();
  const DetailFooter& footer = *reader.footer();
  const uint64_t bytes = reader.section_bytes();
  const bool stale = detail.state == FileState::kStaleHeader;  // then the header claims nothing
  const bool header_wrong =
      !stale && (header.event_count != detail.records || header.bytes_length != bytes);
  if (footer.event_count != detail.records || footer.bytes_length != bytes || header_wrong) {
    add(Severity::kError, Lane::kDetail, Check::kDetailCounts, end,
        "records/bytes: the header says " + number(header.event_count) + "/" +
            number(header.bytes_length) + ", the footer " + number(footer.event_count) + "/" +
            number(footer.bytes_length) + ", found " + number(detail.records) + "/" +
            number(bytes));
  }
  if (detail.records == 0) return;
  if (!stale &&
      (header.index_seq_start != min_index_seq_ || header.index_seq_end != max_index_seq_)) {
    add(Severity::kError, Lane::kDetail, Check::kDetailSeqRange, 44,
        "the header covers events " + number(header.index_seq_start) + " to " +
            number(header.index_seq_end) + ", the records " + number(min_index_seq_) + " to " +
            number(max_index_seq_));
  }
  if (footer.time_start_ns != first_record_ns_ || footer.time_end_ns != last_record_ns_) {
    add(Severity::kWarning, Lane::kDetail, Check::kTimeRange, end + 24,
        "the footer's times are not those of the first and the last record");
  }
}

// The flag is a hint that published writers set at the very end; only a finalized header must agree.
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
    case Grade::kOk: return "ok";
    case Grade::kRecovered: return "recovered";
    case Grade::kDamaged: return "damaged";
    case Grade::kPartial: return "partial";
    case Grade::kRejected: return "rejected";
  }
  return "unknown";
}

ThreadReport check_thread(uint32_t n, Bytes index, std::optional<Bytes> detail) {
  return ThreadCheck(n, index, detail).run();
}

ThreadReport check_detail_alone(uint32_t n, Bytes detail) {
  return ThreadCheck(n, {}, detail).run_detail_alone();
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
