#include "formats/atf/detail_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/atf/joined_ranges.h"
#include "formats/atf/payload.h"
#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

// The pass over one range of records.
class RecordPass {
 public:
  RecordPass(const IndexReader* index, DetailTally& tally) : index_(index), tally_(tally) {}

  void check_record(const DetailRecord& record, uint64_t seq, uint64_t offset);

 private:
  void check_payload(const DetailRecord& record, uint64_t offset,
                     const std::optional<IndexEvent>& event);

  const IndexReader* index_;  // null when the file is checked alone
  DetailTally& tally_;
};

void RecordPass::check_record(const DetailRecord& record, uint64_t seq, uint64_t offset) {
  if (tally_.records++ == 0) tally_.first_ns = record.timestamp_ns;
  tally_.last_ns = record.timestamp_ns;
  tally_.min_index_seq = std::min(tally_.min_index_seq, record.index_seq);
  tally_.max_index_seq = std::max(tally_.max_index_seq, record.index_seq);
  DetailTally::Type& type = tally_.types[static_cast<uint16_t>(record.type)];
  if (type.records++ == 0) type.first_seq = seq;
  if (!index_) {
    check_payload(record, offset, std::nullopt);
    return;
  }
  const auto event = index_->get(record.index_seq);
  if (!event) {
    tally_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kLinkPast, offset + 8, [&] {
          return fmt::format("detail {} points to event {}, past the index", seq, record.index_seq);
        });
  } else if (event->detail_seq != seq) {
    tally_.findings.add_lazily(Severity::kError, Lane::kDetail, Check::kLinkBack, offset + 8, [&] {
      const std::string to =
          event->detail_seq == kNoDetail ? "none" : fmt::format("detail {}", event->detail_seq);
      return fmt::format("detail {} points to event {}, which points to {}", seq, record.index_seq,
                         to);
    });
  } else if (event->timestamp_ns != record.timestamp_ns) {
    tally_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kLinkTime, offset + 16, [&] {
          return fmt::format("detail {} has another time than its event {}", seq, record.index_seq);
        });
  }
  if (index_->version() == Version::kV1 && record.thread_id != index_->header().thread_id) {
    tally_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kThreadId, offset + 12,
        [&] { return fmt::format("detail {} carries thread id {}", seq, record.thread_id); });
  }
  check_payload(record, offset, event);
}

void RecordPass::check_payload(const DetailRecord& record, uint64_t offset,
                               const std::optional<IndexEvent>& event) {
  const bool function =
      record.type == DetailType::kFunctionCall || record.type == DetailType::kFunctionReturn;
  const auto payload = function ? decode_function_payload(record.payload) : std::nullopt;
  if (!payload) {
    ++tally_.opaque_payloads;
    if (function) {
      tally_.findings.add_lazily(
          Severity::kNote, Lane::kDetail, Check::kPayload, offset + kDetailHeaderBytes, [&] {
            return fmt::format(
                "a function record with {} payload bytes that have neither known form",
                record.payload.size());
          });
    }
    return;
  }
  ++(payload->form == PayloadForm::kDocumented ? tally_.documented_payloads
                                               : tally_.tracer_payloads);
  if (!event) return;
  if (payload->function_id != event->function_id) {
    tally_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kPayloadFunction, offset + kDetailHeaderBytes,
        [&] {
          return fmt::format("the payload names another function than event {}", record.index_seq);
        });
  }
  const bool call = record.type == DetailType::kFunctionCall;
  if ((call && event->kind == EventKind::kReturn) || (!call && event->kind == EventKind::kCall)) {
    tally_.findings.add_lazily(
        Severity::kWarning, Lane::kDetail, Check::kRecordType, offset + 4, [&] {
          return fmt::format("the record's type does not fit the kind of event {}",
                             record.index_seq);
        });
  }
}

void check_counts(const IndexReader* index, const DetailReader& reader, const DetailTally& tally,
                  ThreadReport& report) {
  const DetailReport& detail = report.detail;
  const auto add = [&report](Severity severity, Check check, uint64_t offset,
                             std::string sentence) {
    report.findings.add(severity, Lane::kDetail, check, offset, std::move(sentence));
  };
  const uint64_t end = reader.header().events_offset + reader.section_bytes();
  const bool finalized = reader.footer().has_value();
  if (index && report.links != detail.records) {
    add(finalized ? Severity::kError : Severity::kWarning, Check::kLinkCount, end,
        fmt::format("{} details, {} links from the index", detail.records, report.links));
  }
  if (detail.trailing_bytes != 0) {
    add(finalized ? Severity::kError : Severity::kNote, Check::kDetailWalk,
        reader.header().events_offset + detail.bytes,
        fmt::format("{} bytes that are no whole record are not read", detail.trailing_bytes));
  }
  if (!finalized) return;
  if (detail.checksum == ChecksumState::kBad) {
    add(Severity::kError, Check::kChecksum, end + 4,
        "the checksum of the records section does not match");
  }
  if (reader.bytes_after_footer() != 0) {
    add(Severity::kWarning, Check::kAfterFooter, end + kFooterBytes,
        fmt::format("{} bytes after the footer are not read", reader.bytes_after_footer()));
  }
  const DetailFileHeader& header = reader.header();
  const DetailFooter& footer = *reader.footer();
  const uint64_t bytes = reader.section_bytes();
  const bool stale = detail.state == FileState::kStaleHeader;  // then the header claims nothing
  const bool header_wrong =
      !stale && (header.event_count != detail.records || header.bytes_length != bytes);
  if (footer.event_count != detail.records || footer.bytes_length != bytes || header_wrong) {
    add(Severity::kError, Check::kDetailCounts, end,
        fmt::format("records/bytes: the header says {}/{}, the footer {}/{}, found {}/{}",
                    header.event_count, header.bytes_length, footer.event_count,
                    footer.bytes_length, detail.records, bytes));
  }
  if (detail.records == 0) return;
  if (!stale && (header.index_seq_start != tally.min_index_seq ||
                 header.index_seq_end != tally.max_index_seq)) {
    add(Severity::kError, Check::kDetailSeqRange, 44,
        fmt::format("the header covers events {} to {}, the records {} to {}",
                    header.index_seq_start, header.index_seq_end, tally.min_index_seq,
                    tally.max_index_seq));
  }
  if (footer.time_start_ns != tally.first_ns || footer.time_end_ns != tally.last_ns) {
    add(Severity::kWarning, Check::kTimeRange, end + 24,
        "the footer's times are not those of the first and the last record");
  }
}

}  // namespace

void DetailTally::add(DetailTally&& next, Version version) {
  if (next.records == 0) return;
  if (records == 0) first_ns = next.first_ns;
  last_ns = next.last_ns;
  min_index_seq = std::min(min_index_seq, next.min_index_seq);
  max_index_seq = std::max(max_index_seq, next.max_index_seq);
  documented_payloads += next.documented_payloads;
  tracer_payloads += next.tracer_payloads;
  opaque_payloads += next.opaque_payloads;
  checksum = joined_checksum(version, checksum, next.checksum, next.bytes);
  records += next.records;
  bytes += next.bytes;
  // Types are counted in order of appearance while there is room.
  std::vector<std::pair<uint16_t, Type>> in_order(next.types.begin(), next.types.end());
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.second.first_seq < b.second.first_seq; });
  for (const auto& [type, count] : in_order) {
    if (types.size() >= kMaxCountedTypes && !types.contains(type)) continue;
    types.try_emplace(type, Type{0, count.first_seq}).first->second.records += count.records;
  }
  join_findings(findings, std::move(next.findings));
}

std::optional<RecordRange> RecordRanges::next() {
  RecordRange range{cursor_.consumed_bytes(), 0, cursor_.seq()};
  while (range.bytes < range_bytes_ && cursor_.next()) {
    range.bytes = cursor_.consumed_bytes() - range.begin;
  }
  if (range.bytes == 0) return std::nullopt;
  return range;
}

DetailTally tally_records(const IndexReader* index, const DetailReader& reader,
                          const RecordRange& range) {
  DetailTally tally;
  RecordPass pass(index, tally);
  const Bytes bytes = reader.section().subspan(range.begin, range.bytes);
  tally.bytes = range.bytes;
  tally.checksum = section_checksum(reader.version(), bytes);
  DetailCursor cursor(reader.version(), bytes, reader.header().events_offset + range.begin);
  for (;;) {
    const uint64_t offset = cursor.offset();
    const uint64_t seq = range.first_seq + cursor.seq();
    const auto record = cursor.next();
    if (!record) break;
    pass.check_record(*record, seq, offset);
  }
  return tally;
}

void conclude_detail(const IndexReader* index, const DetailReader& reader, DetailTally&& tally,
                     ThreadReport& report) {
  DetailReport& detail = report.detail;
  detail.records = tally.records;
  detail.bytes = tally.bytes;
  detail.trailing_bytes = reader.section_bytes() - tally.bytes;
  detail.documented_payloads = tally.documented_payloads;
  detail.tracer_payloads = tally.tracer_payloads;
  detail.opaque_payloads = tally.opaque_payloads;
  for (const auto& [type, count] : tally.types) detail.types[type] = count.records;
  if (reader.footer()) {
    const Bytes rest = reader.section().subspan(tally.bytes);
    detail.checksum = reader.checksum(section_checksum(reader.version(), rest, tally.checksum));
  }
  join_findings(report.findings, std::move(tally.findings));
  check_counts(index, reader, tally, report);
}

}  // namespace collect::atf
