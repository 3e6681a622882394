#include "formats/atf/detail_check.h"

#include <algorithm>
#include <string>

#include "formats/atf/payload.h"

namespace collect::atf {
namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
}

class DetailCheck {
 public:
  DetailCheck(const IndexReader* index, ThreadReport& report) : index_(index), report_(report) {}

  void run(Bytes file);

 private:
  void check_record(const DetailRecord& record, uint64_t seq, uint64_t offset);
  void check_payload(const DetailRecord& record, uint64_t offset,
                     const std::optional<IndexEvent>& event);
  void check_detail_counts(const DetailReader& reader);

  void add(Severity severity, Lane lane, Check check, uint64_t offset, std::string sentence) {
    report_.findings.add(severity, lane, check, offset, std::move(sentence));
  }

  const IndexReader* index_;  // null when the file is checked alone
  ThreadReport& report_;
  uint64_t min_index_seq_ = UINT64_MAX;
  uint64_t max_index_seq_ = 0;
  uint64_t first_record_ns_ = 0;
  uint64_t last_record_ns_ = 0;
};

void DetailCheck::run(Bytes file) {
  auto reader = DetailReader::open(file, report_.findings);
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

void DetailCheck::check_record(const DetailRecord& record, uint64_t seq, uint64_t offset) {
  if (seq == 0) first_record_ns_ = record.timestamp_ns;
  last_record_ns_ = record.timestamp_ns;
  min_index_seq_ = std::min(min_index_seq_, record.index_seq);
  max_index_seq_ = std::max(max_index_seq_, record.index_seq);
  auto& types = report_.detail.types;
  const auto type = static_cast<uint16_t>(record.type);
  if (types.size() < kMaxCountedTypes || types.contains(type)) ++types[type];
  if (!index_) {
    check_payload(record, offset, std::nullopt);
    return;
  }
  const auto event = index_->get(record.index_seq);
  if (!event) {
    report_.findings.add_lazily(Severity::kWarning, Lane::kDetail, Check::kLinkPast, offset + 8,
                                [&] {
                                  return "detail " + number(seq) + " points to event " +
                                         number(record.index_seq) + ", past the index";
                                });
  } else if (event->detail_seq != seq) {
    report_.findings.add_lazily(Severity::kError, Lane::kDetail, Check::kLinkBack, offset + 8, [&] {
      const std::string to =
          event->detail_seq == kNoDetail ? "none" : "detail " + number(event->detail_seq);
      return "detail " + number(seq) + " points to event " + number(record.index_seq) +
             ", which points to " + to;
    });
  } else if (event->timestamp_ns != record.timestamp_ns) {
    report_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kLinkTime, offset + 16, [&] {
          return "detail " + number(seq) + " has another time than its event " +
                 number(record.index_seq);
        });
  }
  if (index_->version() == Version::kV1 && record.thread_id != index_->header().thread_id) {
    report_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kThreadId, offset + 12,
        [&] { return "detail " + number(seq) + " carries thread id " + number(record.thread_id); });
  }
  check_payload(record, offset, event);
}

void DetailCheck::check_payload(const DetailRecord& record, uint64_t offset,
                                const std::optional<IndexEvent>& event) {
  DetailReport& detail = report_.detail;
  const bool function =
      record.type == DetailType::kFunctionCall || record.type == DetailType::kFunctionReturn;
  const auto payload = function ? decode_function_payload(record.payload) : std::nullopt;
  if (!payload) {
    ++detail.opaque_payloads;
    if (function) {
      report_.findings.add_lazily(
          Severity::kNote, Lane::kDetail, Check::kPayload, offset + kDetailHeaderBytes, [&] {
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
    report_.findings.add_lazily(Severity::kWarning, Lane::kDetail, Check::kPayloadFunction,
                                offset + kDetailHeaderBytes, [&] {
                                  return "the payload names another function than event " +
                                         number(record.index_seq);
                                });
  }
  const bool call = record.type == DetailType::kFunctionCall;
  if ((call && event->kind == EventKind::kReturn) || (!call && event->kind == EventKind::kCall)) {
    report_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kRecordType, offset + 4, [&] {
          return "the record's type does not fit the kind of event " + number(record.index_seq);
        });
  }
}

void DetailCheck::check_detail_counts(const DetailReader& reader) {
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

}  // namespace

void check_detail_file(Bytes file, const IndexReader* index, ThreadReport& report) {
  report.detail.present = true;
  DetailCheck(index, report).run(file);
}

}  // namespace collect::atf
