#include "storage/convert/ordered_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "formats/atf/writer.h"
#include "formats/core/text/figures.h"
#include "storage/read/unnamed_file.h"

namespace collect::convert {

void remark_put_in_order(uint32_t n, uint64_t backward_steps, ConvertLog& log) {
  if (backward_steps == 0) return;
  log.remark(
      fmt::format("thread {}: its times step back {}; its events are put in the order of time", n,
                  counted(backward_steps, "time")));
}

Result<OrderedThread> OrderedThread::of(const atf::ThreadFiles& files, const std::string& directory,
                                        ConvertLog& log) {
  const atf::SessionReader alone({files});
  const atf::SessionThread& thread = alone.threads().front();
  const atf::EventSpan events = thread.index->events();
  bool has_unknown = false;
  events.for_each([&](uint64_t, const atf::IndexEvent& event) { has_unknown |= !is_known(event); });
  const uint64_t backward_steps = alone.time_order(0).backward_steps();
  remark_put_in_order(thread.n, backward_steps, log);
  OrderedThread ordered;
  ordered.n_ = thread.n;
  ordered.header_ = thread.index->header();
  if (backward_steps != 0 || has_unknown) {
    COLLECT_TRY(ordered.copy(alone, directory, log));
  } else {
    ordered.events_ = events.bytes();
    if (thread.detail) ordered.details_ = thread.detail->section();
    if (thread.detail) ordered.record_count_ = thread.detail->size();
  }
  return ordered;
}

Status OrderedThread::copy(const atf::SessionReader& alone, const std::string& directory,
                           ConvertLog& log) {
  const atf::SessionThread& thread = alone.threads().front();
  const atf::Version version = thread.index->version();
  auto events = read::UnnamedFile::create(directory);
  if (!events.ok()) return events.error();
  auto details = read::UnnamedFile::create(directory);
  if (!details.ok()) return details.error();
  std::array<uint8_t, atf::kEventBytes> event_bytes{};
  std::vector<uint8_t> record_bytes;
  uint64_t event_count = 0;
  atf::MergedCursor in_order = alone.merged();
  for (atf::MergedEvent next; in_order.next(next);) {
    atf::IndexEvent& event = next.event;
    if (!is_known(event)) continue;
    auto record = alone.detail_of(0, event);
    event.detail_seq = record ? record_count_++ : atf::kNoDetail;
    atf::encode_index_event(version, event, event_bytes);
    COLLECT_TRY(events->write(event_bytes));
    if (record) {
      record->index_seq = event_count;
      record->timestamp_ns = event.timestamp_ns;
      record_bytes.resize(atf::kDetailHeaderBytes + record->payload.size());
      atf::encode_detail_record(version, *record, record_bytes);
      COLLECT_TRY(details->write(record_bytes));
    }
    ++event_count;
  }
  const auto keep = [](read::UnnamedFile& file, read::FileBytes& bytes) -> Status {
    auto written = file.bytes();
    if (!written.ok()) return written.error();
    bytes = std::move(*written);
    return {};
  };
  COLLECT_TRY(keep(*events, copied_events_));
  events_ = copied_events_.bytes();
  if (!thread.detail) return {};
  COLLECT_TRY(keep(*details, copied_details_));
  details_ = copied_details_.bytes();
  log.missing("detail records that no event links to",
              thread.detail->size() - std::min(thread.detail->size(), record_count_));
  return {};
}

}  // namespace collect::convert
